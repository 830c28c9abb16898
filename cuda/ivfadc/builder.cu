#include "ivfadc/builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>
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
#include "methods/arrays.h"
#include "methods/calibrate.h"
#include "methods/ivfadc/build_arrays.h"
#include "methods/ivfadc/build_samples.h"
#include "methods/ivfadc/calibration.h"
#include "methods/ivfadc/ivfadc.h"
#include "numeric/half_codec.h"
#include "numeric/rotation.h"
#include "numeric/sample.h"
#include "rows/forms.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint64_t seed = build_seed;
constexpr std::size_t training_iterations = 10;  // they cost little here

constexpr std::size_t report_rows = std::size_t{1} << 19;  // rows between reports of progress

// Host memory that is not cleared first.
template <class T>
struct HostArray {
    std::unique_ptr<T[]> data;
    std::size_t size = 0;

    HostArray() = default;
    explicit HostArray(std::size_t count) : data(std::make_unique_for_overwrite<T[]>(count)), size(count) {}
    std::span<const T> span() const { return {data.get(), size}; }
};

// What is in device memory while a build runs.
struct Resident {
    Context& context;
    Context::Lease lease;
    Staging staging;
    DeviceArray<float> rows;
    DeviceArray<float> centroids;
    DeviceArray<std::uint32_t> lists;
    DeviceArray<std::uint8_t> codes;
    DeviceArray<std::uint16_t> halves;

    explicit Resident(Context& given)
        : context(given), lease(given.lease(Priority::build)), staging(static_cast<cudaStream_t>(lease))
    {
    }
    cudaStream_t stream() const { return lease; }
    void wait() const { lease.stream().synchronize(); }

    template <class T>
    DeviceArray<T> array(std::size_t count) const
    {
        return DeviceArray<T>(context.pool(), count, "ivfadc build", stream());
    }
    // From pageable memory: staged by the driver before the call returns. For small arrays.
    template <class T>
    DeviceArray<T> copy_of(std::span<const T> values) const
    {
        DeviceArray<T> copy = array<T>(values.size());
        if (!values.empty())
            check(cudaMemcpyAsync(copy.data(), values.data(), copy.bytes(), cudaMemcpyHostToDevice, stream()),
                  "copying to the device");
        return copy;
    }
    // Waits.
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

class IvfadcBuilder : public Builder
{
public:
    IvfadcBuilder(Context& context, const IndexShape& shape, const ParameterList& options,
                  SearcherFactory make_searcher)
        : context_(context),
          shape_(shape),
          metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          asked_(options),
          make_searcher_(make_searcher)
    {
        if (metric_ == Metric::l1) throw BadRequest("ivfadc knows no L1 distance");
        options_ = IvfOptions::resolve(asked_, 0, dimensions_);
    }

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override;
    std::vector<ArrayShape> arrays() const override;
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override;
    Calibration calibration() const override { return host_ ? host_->calibration() : calibration_; }
    ParameterList effective_options() const override
    {
        return host_ ? host_->effective_options() : options_.as_parameters();
    }

private:
    void run_on_device(RowBuffer& rows, ThreadPool& pool);
    void upload(Resident& device, std::span<const float> vectors, ThreadPool& pool) const;
    void train_lists(Resident& device);
    void assign_rows(Resident& device, ThreadPool& pool);
    void make_codes(Resident& device, ThreadPool& pool);
    DeviceRotation make_rotation(Resident& device, DeviceArray<float>& sample, ThreadPool& pool);
    void encode(Resident& device, const DeviceRotation& rotation, const DeviceArray<float>& codebooks);
    void make_halves(Resident& device);
    void calibrate(Resident& device, ThreadPool& pool);
    IvfadcArrays made() const;
    void make_bytes(Resident& device, ThreadPool& pool);
    void keep_vectors(Resident& device, RowBuffer& rows, ThreadPool& pool);
    void report(const char* phase, std::uint64_t done, std::uint64_t total) const
    {
        if (progress_->cancel != nullptr) progress_->cancel->check();
        if (progress_->report) progress_->report(phase, done, total);
    }

    Context& context_;
    IndexShape shape_;
    Metric metric_;
    std::size_t dimensions_;
    ParameterList asked_;
    SearcherFactory make_searcher_;
    IvfOptions options_;
    std::size_t rows_ = 0;
    const BuildProgress* progress_ = nullptr;
    std::vector<float> centroids_;
    std::vector<std::uint32_t> list_of_row_;
    Rotation rotation_;
    std::vector<float> codebooks_;
    HostArray<std::uint8_t> codes_;
    HostArray<float> code_scale_;
    HalfCodec half_codec_;
    float half_scale_[2] = {1, 0};
    std::span<const std::uint16_t> halves_;
    std::span<const float> vectors_;
    Calibration calibration_;
    bool rows_changed_ = false;
    std::unique_ptr<Builder> host_;
};

void IvfadcBuilder::run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
{
    options_ = IvfOptions::resolve(asked_, rows.size(), dimensions_);
    rows_ = rows.size();
    progress_ = &progress;
    try {
        run_on_device(rows, pool);
    } catch (const std::bad_alloc&) {
        if (rows_changed_) throw;
        host_ = pgwarp::make_ivfadc_builder(shape_, asked_);
        host_->run(rows, progress, pool);
    }
}

void IvfadcBuilder::run_on_device(RowBuffer& rows, ThreadPool& pool)
{
    const Context::Build build(context_);
    Resident device(context_);
    upload(device, rows.vectors(), pool);
    train_lists(device);
    assign_rows(device, pool);
    if (options_.product_codes) make_codes(device, pool);
    if (options_.byte_codes) make_bytes(device, pool);
    if (options_.keeps_half()) make_halves(device);
    // Last, because it gives the rows up: until then the CPU can take over.
    calibrate(device, pool);
    keep_vectors(device, rows, pool);
}

void IvfadcBuilder::upload(Resident& device, std::span<const float> vectors, ThreadPool& pool) const
{
    device.rows = device.array<float>(vectors.size());
    for (std::size_t first = 0; first < rows_; first += report_rows) {
        report("copying rows", first, rows_);
        const std::size_t count = std::min(report_rows, rows_ - first);
        device.staging.upload(vectors.data() + first * dimensions_, count * dimensions_ * sizeof(float),
                              device.rows.data() + first * dimensions_, pool, progress_->cancel);
    }
}

void IvfadcBuilder::train_lists(Resident& device)
{
    report("training lists", 0, training_iterations);
    const std::vector<std::uint32_t> chosen = sample_rows(rows_, options_.lists * rows_per_list, seed);
    const auto numbers = device.copy_of(std::span(chosen));
    DeviceArray<float> sample = device.array<float>(chosen.size() * dimensions_);
    gather_rows(device.rows.data(), dimensions_, numbers.data(), chosen.size(), sample.data(), device.stream());
    KMeansOptions training;
    training.clusters = options_.lists;
    training.iterations = training_iterations;
    training.seed = seed;
    training.spherical = metric_ == Metric::cosine;
    training.balanced = true;
    training.cancel = progress_->cancel;
    training.progress = [this](std::size_t done, std::size_t total) { report("training lists", done, total); };
    device.centroids = device.array<float>(options_.lists * dimensions_);
    train_kmeans(context_, sample.data(), chosen.size(), dimensions_, training, device.centroids.data(),
                 device.stream());
    centroids_.resize(device.centroids.size());
    device.read(device.centroids.data(), std::span(centroids_));
}

void IvfadcBuilder::assign_rows(Resident& device, ThreadPool& pool)
{
    device.lists = device.array<std::uint32_t>(rows_);
    const Metric metric = metric_ == Metric::cosine ? Metric::inner_product : Metric::l2;
    for (std::size_t first = 0; first < rows_; first += report_rows) {
        report("assigning rows", first, rows_);
        assign_to_centroids(context_, metric, device.rows.data() + first * dimensions_,
                            std::min(report_rows, rows_ - first), dimensions_, device.centroids.data(), options_.lists,
                            device.lists.data() + first, progress_->cancel, device.stream());
        device.wait();
    }
    list_of_row_.resize(rows_);
    device.staging.download(device.lists.data(), device.lists.bytes(), list_of_row_.data(), pool, progress_->cancel);
}

void IvfadcBuilder::make_codes(Resident& device, ThreadPool& pool)
{
    report("training quantizer", 0, 1);
    const ProductQuantizer shape(dimensions_, options_.subquantizers);
    DeviceArray<float> codebooks = device.array<float>(ProductQuantizer::codewords * dimensions_);
    DeviceRotation rotation;
    {
        const std::vector<std::uint32_t> chosen =
            sample_rows(rows_, ProductQuantizer::codewords * rows_per_codeword, seed + 1);
        const auto numbers = device.copy_of(std::span(chosen));
        DeviceArray<float> sample = device.array<float>(chosen.size() * dimensions_);
        gather_residuals(device.rows.data(), dimensions_, numbers.data(), chosen.size(),
                         {device.lists.data(), device.centroids.data()}, sample.data(), device.stream());
        if (options_.opq && rows_ > 0) rotation = make_rotation(device, sample, pool);
        train_product_quantizer(context_, sample.data(), chosen.size(), shape, seed, codebooks.data(),
                                progress_->cancel, device.stream());
    }
    codebooks_.resize(codebooks.size());
    device.read(codebooks.data(), std::span(codebooks_));
    encode(device, rotation, codebooks);
    codes_ = HostArray<std::uint8_t>(device.codes.size());
    device.staging.download(device.codes.data(), device.codes.bytes(), codes_.data.get(), pool, progress_->cancel);
    device.codes = {};
}

// A rotation that is learnt is learnt on the CPU; the sample is rotated with it.
DeviceRotation IvfadcBuilder::make_rotation(Resident& device, DeviceArray<float>& sample, ThreadPool& pool)
{
    std::vector<float> host(Rotation::learnt(dimensions_) ? sample.size() : 0);
    device.read(sample.data(), std::span(host));
    rotation_ = Rotation(host, dimensions_, options_.subquantizers, seed, pool, progress_->cancel);
    DeviceRotation rotation{device.copy_of(std::as_const(rotation_).matrix()),
                            device.copy_of(std::as_const(rotation_).signs())};
    DeviceArray<float> rotated = device.array<float>(sample.size());
    rotation.apply(sample.data(), sample.size() / dimensions_, dimensions_, {}, rotated.data(), device.stream());
    sample = std::move(rotated);
    return rotation;
}

void IvfadcBuilder::encode(Resident& device, const DeviceRotation& rotation, const DeviceArray<float>& codebooks)
{
    const ProductQuantizer shape(dimensions_, options_.subquantizers);
    const ResidualBase base{device.lists.data(), device.centroids.data()};
    device.codes = device.array<std::uint8_t>(rows_ * options_.subquantizers);
    const bool rotates = !rotation_.empty();
    // Rotated rows are at most a gigabyte.
    const std::size_t step = rotates ? std::min(report_rows, (std::size_t{1} << 28) / dimensions_) : report_rows;
    DeviceArray<float> rotated = device.array<float>(rotates ? std::min(step, rows_) * dimensions_ : 0);
    for (std::size_t first = 0; first < rows_; first += step) {
        report("encoding rows", first, rows_);
        const std::size_t count = std::min(step, rows_ - first);
        const float* piece = device.rows.data() + first * dimensions_;
        const ResidualBase piece_base{base.labels + first, base.centroids};
        std::uint8_t* codes = device.codes.data() + first * options_.subquantizers;
        if (rotates) {
            rotation.apply(piece, count, dimensions_, piece_base, rotated.data(), device.stream());
            encode_product(context_, rotated.data(), count, {}, shape, codebooks.data(), codes, progress_->cancel,
                           device.stream());
        } else {
            encode_product(context_, piece, count, piece_base, shape, codebooks.data(), codes, progress_->cancel,
                           device.stream());
        }
        device.wait();
    }
}

void IvfadcBuilder::make_bytes(Resident& device, ThreadPool& pool)
{
    device.codes = device.array<std::uint8_t>(rows_ * dimensions_);
    DeviceArray<float> scales = device.array<float>(rows_);
    for (std::size_t first = 0; first < rows_; first += report_rows) {
        report("encoding rows", first, rows_);
        rows::encode_byte_rows(device.rows.data() + first * dimensions_, std::min(report_rows, rows_ - first),
                               static_cast<std::uint32_t>(dimensions_), device.lists.data() + first,
                               device.centroids.data(), device.codes.data() + first * dimensions_,
                               scales.data() + first, device.stream());
        device.wait();
    }
    codes_ = HostArray<std::uint8_t>(device.codes.size());
    code_scale_ = HostArray<float>(rows_);
    device.staging.download(device.codes.data(), device.codes.bytes(), codes_.data.get(), pool, progress_->cancel);
    device.staging.download(scales.data(), scales.bytes(), code_scale_.data.get(), pool, progress_->cancel);
    device.codes = {};
}

void IvfadcBuilder::make_halves(Resident& device)
{
    report("measuring half vectors", 0, rows_);
    half_codec_ = are_halves(shape_) ? HalfCodec::identity(dimensions_)
                                     : train_half(context_, device.rows.data(), rows_, dimensions_, device.stream());
    half_scale_[0] = half_codec_.scale;
    if (rows_ == 0) return;
    const auto mean = device.copy_of(std::span<const float>(half_codec_.mean));
    DeviceArray<std::uint32_t> worst = device.array<std::uint32_t>(1);
    check(cudaMemsetAsync(worst.data(), 0, worst.bytes(), device.stream()), "clearing a maximum");
    device.halves = device.array<std::uint16_t>(rows_ * dimensions_);
    encode_half(device.rows.data(), rows_, half_codec_, mean.data(), device.halves.data(), worst.data(),
                device.stream());
    std::uint32_t bits = 0;
    device.read(worst.data(), std::span(&bits, 1));
    half_scale_[1] = std::bit_cast<float>(bits);
}

// The rows' memory takes the half vectors that the device made.
void IvfadcBuilder::keep_vectors(Resident& device, RowBuffer& rows, ThreadPool& pool)
{
    if (options_.keeps_full()) vectors_ = rows.vectors();
    if (!options_.keeps_half() || options_.keeps_full()) return;
    report("writing half vectors", 0, rows_);
    rows_changed_ = true;
    const std::span<std::uint16_t> halves = rows.replace_by_half();
    device.staging.download(device.halves.data(), device.halves.bytes(), halves.data(), pool, nullptr);
    halves_ = halves;
    device.halves = {};
}

void IvfadcBuilder::calibrate(Resident& device, ThreadPool& pool)
{
    report("calibrating", 0, 1);
    if (rows_ < 2) return;
    const std::vector<std::uint32_t> sample = sample_rows(rows_, calibration_sample(options_, rows_), seed + 2);
    const auto truth = cuda::calibration_truth(context_, metric_, device.rows.data(), rows_, dimensions_, sample, pool,
                                               progress_->cancel, device.stream());
    const auto numbers = device.copy_of(std::span(sample));
    DeviceArray<float> gathered = device.array<float>(sample.size() * dimensions_);
    gather_rows(device.rows.data(), dimensions_, numbers.data(), sample.size(), gathered.data(), device.stream());
    std::vector<float> queries(gathered.size());
    device.read(gathered.data(), std::span(queries));
    const auto make_searcher = [this, &pool] {
        auto searcher = make_searcher_(shape_, effective_options(), arrays());
        feed_searcher(*this, *searcher, pool);
        return searcher;
    };
    const IvfadcCalibration calibration{options_, metric_, dimensions_, centroids_,   list_of_row_,
                                        sample,   queries, truth,       make_searcher};
    calibration_ = calibration.run(*progress_, pool);
}

IvfadcArrays IvfadcBuilder::made() const
{
    return {options_,    rows_,        dimensions_,   centroids_, rotation_, codebooks_,        half_codec_.mean,
            half_scale_, list_of_row_, codes_.span(), halves_,    vectors_,  code_scale_.span()};
}

std::vector<ArrayShape> IvfadcBuilder::arrays() const
{
    return host_ ? host_->arrays() : made().shapes();
}

void IvfadcBuilder::read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const
{
    if (host_) return host_->read(array, offset, out);
    made().read(array, offset, out);
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_builder(Context& context, const IndexShape& shape, const ParameterList& options,
                                             SearcherFactory make_searcher)
{
    return std::make_unique<IvfadcBuilder>(context, shape, options, make_searcher);
}

}  // namespace pgwarp::cuda
