// The steps of an ivfadc build on the device, over rows that are uploaded once.
#include "ivfadc/builder.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "cluster/assign.h"
#include "cluster/hadamard.h"
#include "cluster/half_rows.h"
#include "cluster/kmeans.h"
#include "cluster/product_quantizer.h"
#include "cluster/row_products.h"
#include "cluster/staging.h"
#include "cluster/truth.h"
#include "device/error.h"
#include "device/wait.h"
#include "methods/ivfadc/build_samples.h"
#include "methods/ivfadc/build_steps.h"
#include "rows/forms.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t training_iterations = 10;            // they cost little on a device
constexpr std::size_t report_rows = std::size_t{1} << 19;  // rows between reports of progress

// The data in device memory while a build runs.
struct Resident {
    Context& context;
    Context::Build build;
    Context::Lease lease;
    Staging staging;
    DeviceArray<float> rows;
    DeviceArray<float> centroids;
    DeviceArray<std::uint32_t> lists;
    DeviceArray<std::uint16_t> halves;

    explicit Resident(Context& given)
        : context(given), build(given), lease(given.lease(Priority::build)), staging(static_cast<cudaStream_t>(lease))
    {
    }
    cudaStream_t stream() const { return lease; }
    void wait() const { lease.stream().synchronize(); }

    template <class T>
    DeviceArray<T> array(std::size_t count) const
    {
        return DeviceArray<T>(context.pool(), count, "ivfadc build", stream());
    }
    // Copies pageable memory, which the driver stages before the call returns. For small arrays.
    template <class T>
    DeviceArray<T> copy_of(std::span<const T> values) const
    {
        DeviceArray<T> copy = array<T>(values.size());
        if (!values.empty())
            check(cudaMemcpyAsync(copy.data(), values.data(), copy.bytes(), cudaMemcpyHostToDevice, stream()),
                  "copying to the device");
        return copy;
    }
    // Copies to the host and waits.
    template <class T>
    void read(const T* device, std::span<T> out) const
    {
        if (out.empty()) return wait();
        read_back(out.data(), device, out.size_bytes(), stream(), "copying from the device");
    }
};

// A rotation on the device: a matrix or signs.
struct DeviceRotation {
    DeviceArray<float> matrix;
    DeviceArray<std::uint8_t> signs;

    void apply(const float* rows, std::size_t count, std::size_t dimensions, const ResidualBase& base, float* out,
               cudaStream_t stream) const
    {
        if (signs.size() > 0) {
            hadamard_rotate_rows(rows, count, dimensions, base, signs.data(), out, stream);
        } else {
            cuda::rotate_rows(rows, count, dimensions, base, matrix.data(), out, stream);
        }
    }
};

class DeviceSteps : public IvfadcBuildSteps
{
public:
    DeviceSteps(Context& context, SearcherFactory make_searcher) : context_(context), make_searcher_(make_searcher) {}

    void begin(const IvfadcBuildInput& input) override;
    void train_lists(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void assign_rows(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void train_quantizer(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void encode_products(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void encode_bytes(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void train_half(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    std::vector<std::vector<std::uint32_t>> truth(const IvfadcBuildInput& input,
                                                  const std::vector<std::uint32_t>& sample) override;
    std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                            std::span<const ArrayShape> arrays) override
    {
        return make_searcher_(shape, options, arrays);
    }
    void keep_halves(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;

private:
    void make_rotation(const IvfadcBuildInput& input, IvfadcArrays& arrays, DeviceArray<float>& sample);
    template <class T>
    void download(const DeviceArray<T>& from, T* to, const IvfadcBuildInput& input) const
    {
        device_->staging.download(from.data(), from.bytes(), to, input.pool, input.progress.cancel);
    }

    Context& context_;
    SearcherFactory make_searcher_;
    std::unique_ptr<Resident> device_;
    DeviceRotation rotation_;
    DeviceArray<float> codebooks_;
};

void DeviceSteps::begin(const IvfadcBuildInput& input)
{
    device_ = std::make_unique<Resident>(context_);
    const std::span<const float> vectors = input.vectors();
    const std::size_t dimensions = input.shape.dimensions;
    const std::size_t rows = input.rows.size();
    device_->rows = device_->array<float>(vectors.size());
    for (std::size_t first = 0; first < rows; first += report_rows) {
        input.report("copying rows", first, rows);
        const std::size_t count = std::min(report_rows, rows - first);
        device_->staging.upload(vectors.data() + first * dimensions, count * dimensions * sizeof(float),
                                device_->rows.data() + first * dimensions, input.pool, input.progress.cancel);
    }
}

void DeviceSteps::train_lists(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    input.report("training lists", 0, training_iterations);
    const std::size_t dimensions = arrays.dimensions;
    const std::vector<std::uint32_t> chosen =
        sample_rows(arrays.rows, arrays.options.lists * rows_per_list, build_seed);
    const auto numbers = device_->copy_of(std::span(chosen));
    DeviceArray<float> sample = device_->array<float>(chosen.size() * dimensions);
    gather_rows(device_->rows.data(), dimensions, numbers.data(), chosen.size(), sample.data(), device_->stream());
    KMeansOptions training = list_training(arrays.options, input.metric(), input.progress);
    training.iterations = training_iterations;
    device_->centroids = device_->array<float>(arrays.options.lists * dimensions);
    train_kmeans(context_, sample.data(), chosen.size(), dimensions, training, device_->centroids.data(),
                 device_->stream());
    arrays.centroids.resize(device_->centroids.size());
    device_->read(device_->centroids.data(), std::span(arrays.centroids));
}

void DeviceSteps::assign_rows(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    device_->lists = device_->array<std::uint32_t>(arrays.rows);
    for (std::size_t first = 0; first < arrays.rows; first += report_rows) {
        input.report("assigning rows", first, arrays.rows);
        assign_to_centroids(context_, input.list_metric(), device_->rows.data() + first * arrays.dimensions,
                            std::min(report_rows, arrays.rows - first), arrays.dimensions, device_->centroids.data(),
                            arrays.options.lists, device_->lists.data() + first, input.progress.cancel,
                            device_->stream());
        device_->wait();
    }
    arrays.list_of_row.resize(arrays.rows);
    download(device_->lists, arrays.list_of_row.data(), input);
}

void DeviceSteps::train_quantizer(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    input.report("training quantizer", 0, 1);
    arrays.quantizer.emplace(arrays.dimensions, arrays.options.subquantizers);
    codebooks_ = device_->array<float>(arrays.quantizer->codebooks().size());
    const std::vector<std::uint32_t> chosen = quantizer_sample(arrays.rows);
    const auto numbers = device_->copy_of(std::span(chosen));
    DeviceArray<float> sample = device_->array<float>(chosen.size() * arrays.dimensions);
    gather_residuals(device_->rows.data(), arrays.dimensions, numbers.data(), chosen.size(),
                     {device_->lists.data(), device_->centroids.data()}, sample.data(), device_->stream());
    if (arrays.options.opq && arrays.rows > 0) make_rotation(input, arrays, sample);
    train_product_quantizer(context_, sample.data(), chosen.size(), *arrays.quantizer, build_seed, codebooks_.data(),
                            input.progress.cancel, device_->stream());
    device_->read(codebooks_.data(), arrays.quantizer->codebooks());
}

// A learnt rotation is learnt on the CPU. The sample is rotated with it.
void DeviceSteps::make_rotation(const IvfadcBuildInput& input, IvfadcArrays& arrays, DeviceArray<float>& sample)
{
    const std::size_t dimensions = arrays.dimensions;
    std::vector<float> host(Rotation::learnt(dimensions) ? sample.size() : 0);
    device_->read(sample.data(), std::span(host));
    arrays.rotation =
        Rotation(host, dimensions, arrays.options.subquantizers, build_seed, input.pool, input.progress.cancel);
    rotation_ = {device_->copy_of(std::as_const(arrays.rotation).matrix()),
                 device_->copy_of(std::as_const(arrays.rotation).signs())};
    DeviceArray<float> rotated = device_->array<float>(sample.size());
    rotation_.apply(sample.data(), sample.size() / dimensions, dimensions, {}, rotated.data(), device_->stream());
    sample = std::move(rotated);
}

void DeviceSteps::encode_products(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    const std::size_t dimensions = arrays.dimensions;
    const std::size_t width = arrays.options.subquantizers;
    DeviceArray<std::uint8_t> codes = device_->array<std::uint8_t>(arrays.rows * width);
    const bool rotates = !arrays.rotation.empty();
    // The buffer of rotated rows is at most a gigabyte.
    const std::size_t step = rotates ? std::min(report_rows, (std::size_t{1} << 28) / dimensions) : report_rows;
    DeviceArray<float> rotated = device_->array<float>(rotates ? std::min(step, arrays.rows) * dimensions : 0);
    for (std::size_t first = 0; first < arrays.rows; first += step) {
        input.report("encoding rows", first, arrays.rows);
        const std::size_t count = std::min(step, arrays.rows - first);
        const float* piece = device_->rows.data() + first * dimensions;
        ResidualBase base{device_->lists.data() + first, device_->centroids.data()};
        if (rotates) {
            rotation_.apply(piece, count, dimensions, base, rotated.data(), device_->stream());
            piece = rotated.data();
            base = {};
        }
        encode_product(context_, piece, count, base, *arrays.quantizer, codebooks_.data(), codes.data() + first * width,
                       input.progress.cancel, device_->stream());
        device_->wait();
    }
    arrays.codes.resize(codes.size());
    download(codes, arrays.codes.data(), input);
    codebooks_ = {};
    rotation_ = {};
}

void DeviceSteps::encode_bytes(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    const std::size_t dimensions = arrays.dimensions;
    DeviceArray<std::uint8_t> codes = device_->array<std::uint8_t>(arrays.rows * dimensions);
    DeviceArray<float> scales = device_->array<float>(arrays.rows);
    for (std::size_t first = 0; first < arrays.rows; first += report_rows) {
        input.report("encoding rows", first, arrays.rows);
        rows::encode_byte_rows(device_->rows.data() + first * dimensions, std::min(report_rows, arrays.rows - first),
                               static_cast<std::uint32_t>(dimensions), device_->lists.data() + first,
                               device_->centroids.data(), codes.data() + first * dimensions, scales.data() + first,
                               device_->stream());
        device_->wait();
    }
    arrays.codes.resize(codes.size());
    arrays.code_scale.resize(arrays.rows);
    download(codes, arrays.codes.data(), input);
    download(scales, arrays.code_scale.data(), input);
}

// Also makes the half vectors, for keep_halves().
void DeviceSteps::train_half(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    input.report("measuring half vectors", 0, arrays.rows);
    arrays.half.codec = are_halves(input.shape) ? HalfCodec::identity(arrays.dimensions)
                                                : cuda::train_half(context_, device_->rows.data(), arrays.rows,
                                                                   arrays.dimensions, device_->stream());
    arrays.half.scale[0] = arrays.half.codec.scale;
    if (arrays.rows == 0) return;
    const auto mean = device_->copy_of(std::span<const float>(arrays.half.codec.mean));
    DeviceArray<std::uint32_t> worst = device_->array<std::uint32_t>(1);
    check(cudaMemsetAsync(worst.data(), 0, worst.bytes(), device_->stream()), "clearing a maximum");
    device_->halves = device_->array<std::uint16_t>(arrays.rows * arrays.dimensions);
    encode_half(device_->rows.data(), arrays.rows, arrays.half.codec, mean.data(), device_->halves.data(), worst.data(),
                device_->stream());
    std::uint32_t bits = 0;
    device_->read(worst.data(), std::span(&bits, 1));
    arrays.half.scale[1] = std::bit_cast<float>(bits);
}

std::vector<std::vector<std::uint32_t>> DeviceSteps::truth(const IvfadcBuildInput& input,
                                                           const std::vector<std::uint32_t>& sample)
{
    return cuda::calibration_truth(context_, input.metric(), device_->rows.data(), input.rows.size(),
                                   input.shape.dimensions, sample, input.pool, input.progress.cancel,
                                   device_->stream());
}

// Overwrites the memory of the rows with the half vectors from the device.
void DeviceSteps::keep_halves(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    input.report("writing half vectors", 0, arrays.rows);
    const std::span<std::uint16_t> halves = input.rows.replace_by_half();
    device_->staging.download(device_->halves.data(), device_->halves.bytes(), halves.data(), input.pool, nullptr);
    arrays.halves = halves;
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_builder(Context& context, const IndexShape& shape, const ParameterList& options,
                                             SearcherFactory make_searcher)
{
    return pgwarp::make_ivfadc_builder(shape, options, std::make_unique<DeviceSteps>(context, make_searcher));
}

}  // namespace pgwarp::cuda
