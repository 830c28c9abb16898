// The steps of an ivfadc build on the device, over rows that are uploaded once.
#include "ivfadc/builder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cluster/assign.h"
#include "cluster/hadamard.h"
#include "cluster/kmeans.h"
#include "cluster/product_quantizer.h"
#include "cluster/row_products.h"
#include "cluster/vector_steps.h"
#include "methods/ivfadc/build_samples.h"
#include "methods/ivfadc/build_steps.h"
#include "rows/forms.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t training_iterations = 10;            // they cost little on a device
constexpr std::size_t report_rows = std::size_t{1} << 19;  // rows between reports of progress

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

class DeviceSteps : public DeviceVectorSteps<IvfadcBuildSteps, IvfadcArrays>
{
public:
    DeviceSteps(Context& context, const ParameterList& options, SearcherFactory make_searcher)
        : DeviceVectorSteps(context), options_(options), make_searcher_(make_searcher)
    {
    }

    void begin(const IvfadcBuildInput& input) override;
    void train_lists(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void assign_rows(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void train_quantizer(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void encode_products(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    void encode_bytes(const IvfadcBuildInput& input, IvfadcArrays& arrays) override;
    std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                            std::span<const ArrayShape> arrays) override
    {
        return make_searcher_(shape, options, arrays);
    }

private:
    void make_rotation(const IvfadcBuildInput& input, IvfadcArrays& arrays, DeviceArray<float>& sample);
    template <class T>
    void download(const DeviceArray<T>& from, T* to, const IvfadcBuildInput& input) const
    {
        device_->download(from, to, input.pool, input.progress.cancel);
    }

    ParameterList options_;
    SearcherFactory make_searcher_;
    DeviceArray<float> centroids_;
    DeviceArray<std::uint32_t> lists_;
    DeviceRotation rotation_;
    DeviceArray<float> codebooks_;
};

void DeviceSteps::begin(const IvfadcBuildInput& input)
{
    const bool makes_halves = IvfOptions::resolve(options_, input.rows.size(), input.shape.dimensions).keeps_half();
    begin_rows(input, "ivfadc build", makes_halves, 0);
    // The lists are trained on a large sample. The device gathers it much faster than the host, and this saves more
    // time than copying the rows beside their assignment, which is short.
    device_->upload("copying rows", input.progress, input.pool, [](std::size_t, std::size_t) {});
}

void DeviceSteps::train_lists(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    input.report("training lists", 0, training_iterations);
    const std::size_t dimensions = arrays.dimensions;
    const std::vector<std::uint32_t> chosen =
        sample_rows(arrays.rows, arrays.options.lists * rows_per_list, build_seed);
    const DeviceArray<float> sample = device_->sample(chosen);
    KMeansOptions training = list_training(arrays.options, input.metric(), input.progress);
    training.iterations = training_iterations;
    centroids_ = device_->array<float>(arrays.options.lists * dimensions);
    train_kmeans(context_, sample.data(), chosen.size(), dimensions, training, centroids_.data(), device_->stream());
    arrays.centroids.resize(centroids_.size());
    device_->read(centroids_.data(), std::span(arrays.centroids));
}

void DeviceSteps::assign_rows(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    lists_ = device_->array<std::uint32_t>(arrays.rows);
    for (std::size_t first = 0; first < arrays.rows; first += report_rows) {
        input.report("assigning rows", first, arrays.rows);
        assign_to_centroids(context_, list_metric(input), device_->row(first),
                            std::min(report_rows, arrays.rows - first), arrays.dimensions, centroids_.data(),
                            arrays.options.lists, lists_.data() + first, input.progress.cancel, device_->stream());
        device_->wait();
    }
    arrays.list_of_row.resize(arrays.rows);
    download(lists_, arrays.list_of_row.data(), input);
}

void DeviceSteps::train_quantizer(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    input.report("training quantizer", 0, 1);
    arrays.quantizer.emplace(arrays.dimensions, arrays.options.subquantizers);
    codebooks_ = device_->array<float>(arrays.quantizer->codebooks().size());
    const std::vector<std::uint32_t> chosen = quantizer_sample(arrays.rows);
    const auto numbers = device_->copy_of(std::span(chosen));
    DeviceArray<float> sample = device_->array<float>(chosen.size() * arrays.dimensions);
    gather_residuals(device_->data(), arrays.dimensions, numbers.data(), chosen.size(),
                     {lists_.data(), centroids_.data()}, sample.data(), device_->stream());
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
        const float* piece = device_->row(first);
        ResidualBase base{lists_.data() + first, centroids_.data()};
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
        rows::encode_byte_rows(device_->row(first), std::min(report_rows, arrays.rows - first),
                               static_cast<std::uint32_t>(dimensions), lists_.data() + first, centroids_.data(),
                               codes.data() + first * dimensions, scales.data() + first, device_->stream());
        device_->wait();
    }
    arrays.codes.resize(codes.size());
    arrays.code_scale.resize(arrays.rows);
    download(codes, arrays.codes.data(), input);
    download(scales, arrays.code_scale.data(), input);
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_builder(Context& context, const IndexShape& shape, const ParameterList& options,
                                             SearcherFactory make_searcher)
{
    return pgwarp::make_ivfadc_builder(shape, options, std::make_unique<DeviceSteps>(context, options, make_searcher));
}

}  // namespace pgwarp::cuda
