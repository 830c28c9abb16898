#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "methods/arrays.h"
#include "methods/calibrate.h"
#include "methods/ivfadc/build_arrays.h"
#include "methods/ivfadc/build_samples.h"
#include "methods/ivfadc/byte_lists.h"
#include "methods/ivfadc/calibration.h"
#include "methods/ivfadc/ivfadc.h"
#include "numeric/distance.h"
#include "numeric/half_codec.h"
#include "numeric/kmeans.h"
#include "numeric/product_quantizer.h"
#include "numeric/rotation.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

constexpr std::uint64_t seed = build_seed;
constexpr std::size_t encode_step = 8192;

class IvfadcBuilder : public Builder
{
public:
    IvfadcBuilder(const IndexShape& shape, const ParameterList& options)
        : shape_(shape), metric_(static_cast<Metric>(shape.metric)), dimensions_(shape.dimensions), asked_(options)
    {
        if (metric_ == Metric::l1) throw BadRequest("ivfadc knows no L1 distance");
        // What makes no sense is refused before any row comes.
        options_ = IvfOptions::resolve(asked_, 0, dimensions_);
    }

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        options_ = IvfOptions::resolve(asked_, rows.size(), dimensions_);
        rows_ = rows.size();
        progress_ = &progress;
        train_lists(rows.vectors(), pool);
        assign_rows(rows.vectors(), pool);
        if (options_.product_codes) make_codes(rows.vectors(), pool);
        if (options_.byte_codes) make_bytes(rows.vectors(), pool);
        if (options_.keeps_half()) train_half(rows.vectors(), pool);
        calibrate(rows.vectors(), pool);
        keep_vectors(rows);
    }
    std::vector<ArrayShape> arrays() const override { return made().shapes(); }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        made().read(array, offset, out);
    }
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return options_.as_parameters(); }

private:
    void train_lists(std::span<const float> vectors, ThreadPool& pool);
    void assign_rows(std::span<const float> vectors, ThreadPool& pool);
    void make_codes(std::span<const float> vectors, ThreadPool& pool);
    void make_bytes(std::span<const float> vectors, ThreadPool& pool);
    void train_half(std::span<const float> vectors, ThreadPool& pool);
    void calibrate(std::span<const float> vectors, ThreadPool& pool);
    void keep_vectors(RowBuffer& rows);
    void residuals(std::span<const float> vectors, std::size_t first, std::size_t count, std::span<float> out,
                   ThreadPool& pool) const;
    IvfadcArrays made() const;

    IndexShape shape_;
    Metric metric_;
    std::size_t dimensions_;
    ParameterList asked_;
    IvfOptions options_;
    std::size_t rows_ = 0;
    const BuildProgress* progress_ = nullptr;
    std::vector<float> centroids_;
    std::vector<std::uint32_t> list_of_row_;
    Rotation rotation_;
    std::unique_ptr<ProductQuantizer> quantizer_;
    std::vector<std::uint8_t> codes_;
    std::vector<float> code_scale_;
    HalfCodec half_codec_;
    float half_scale_[2] = {1, 0};
    std::span<const std::uint16_t> halves_;
    std::span<const float> vectors_;
    Calibration calibration_;
};

void IvfadcBuilder::train_lists(std::span<const float> vectors, ThreadPool& pool)
{
    const std::vector<float> sample =
        gather_rows(vectors.data(), dimensions_, sample_rows(rows_, options_.lists * rows_per_list, seed));
    KMeansOptions training;
    training.clusters = options_.lists;
    training.iterations = list_iterations;
    training.seed = seed;
    training.spherical = metric_ == Metric::cosine;
    training.balanced = true;
    training.cancel = progress_->cancel;
    training.progress = [this](std::size_t done, std::size_t total) {
        progress_->report("training lists", done, total);
    };
    progress_->report("training lists", 0, list_iterations);
    centroids_ = train_kmeans(sample, dimensions_, training, pool);
}

void IvfadcBuilder::assign_rows(std::span<const float> vectors, ThreadPool& pool)
{
    list_of_row_.resize(rows_);
    constexpr std::size_t step = 65536;
    const Metric metric = metric_ == Metric::cosine ? Metric::inner_product : Metric::l2;
    for (std::size_t first = 0; first < rows_; first += step) {
        progress_->report("assigning rows", first, rows_);
        const std::size_t count = std::min(step, rows_ - first);
        assign_to_centroids(metric, vectors.subspan(first * dimensions_, count * dimensions_), dimensions_, centroids_,
                            std::span(list_of_row_).subspan(first, count), {}, pool, progress_->cancel);
    }
}

// out[i] = row - its centroid, rotated when there is a rotation.
void IvfadcBuilder::residuals(std::span<const float> vectors, std::size_t first, std::size_t count,
                              std::span<float> out, ThreadPool& pool) const
{
    std::vector<float> plain(rotation_.empty() ? 0 : count * dimensions_);
    const std::span<float> target = rotation_.empty() ? out : std::span<float>(plain);
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = vectors.data() + (first + i) * dimensions_;
        const float* centroid = centroids_.data() + std::size_t{list_of_row_[first + i]} * dimensions_;
        for (std::size_t d = 0; d < dimensions_; ++d) target[i * dimensions_ + d] = row[d] - centroid[d];
    }
    if (!rotation_.empty()) rotation_.apply(plain, out, pool);
}

void IvfadcBuilder::make_codes(std::span<const float> vectors, ThreadPool& pool)
{
    progress_->report("training quantizer", 0, 1);
    quantizer_ = std::make_unique<ProductQuantizer>(dimensions_, options_.subquantizers);
    const std::vector<std::uint32_t> chosen =
        sample_rows(rows_, ProductQuantizer::codewords * rows_per_codeword, seed + 1);
    std::vector<float> sample(chosen.size() * dimensions_);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        residuals(vectors, chosen[i], 1, std::span(sample).subspan(i * dimensions_, dimensions_), pool);
    }
    if (options_.opq && rows_ > 0) {
        rotation_ = Rotation(sample, dimensions_, options_.subquantizers, seed, pool, progress_->cancel);
        const std::vector<float> plain = sample;
        rotation_.apply(plain, sample, pool);
    }
    quantizer_->train(sample, seed, pool, progress_->cancel);

    codes_.resize(rows_ * options_.subquantizers);
    std::vector<float> step(std::min(encode_step, rows_) * dimensions_);
    for (std::size_t first = 0; first < rows_; first += encode_step) {
        if (progress_->cancel != nullptr) progress_->cancel->check();
        progress_->report("encoding rows", first, rows_);
        const std::size_t count = std::min(encode_step, rows_ - first);
        const std::span<float> piece = std::span(step).first(count * dimensions_);
        residuals(vectors, first, count, piece, pool);
        quantizer_->encode_rows(
            piece, std::span(codes_).subspan(first * options_.subquantizers, count * options_.subquantizers), pool);
    }
}

void IvfadcBuilder::make_bytes(std::span<const float> vectors, ThreadPool& pool)
{
    codes_.resize(rows_ * dimensions_);
    code_scale_.resize(rows_);
    for (std::size_t first = 0; first < rows_; first += encode_step) {
        if (progress_->cancel != nullptr) progress_->cancel->check();
        progress_->report("encoding rows", first, rows_);
        pool.parallel_for(std::min(encode_step, rows_ - first), 256, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = first + begin; row < first + end; ++row) {
                const float* centroid = centroids_.data() + std::size_t{list_of_row_[row]} * dimensions_;
                code_scale_[row] = encode_bytes(vectors.data() + row * dimensions_, centroid, dimensions_,
                                                codes_.data() + row * dimensions_);
            }
        });
    }
}

void IvfadcBuilder::train_half(std::span<const float> vectors, ThreadPool& pool)
{
    progress_->report("measuring half vectors", 0, rows_);
    half_codec_ = are_halves(shape_) ? HalfCodec::identity(dimensions_) : HalfCodec::train(vectors, dimensions_);
    float worst = 0;
    std::mutex mutex;
    pool.parallel_for(rows_, 4096, [&](std::size_t begin, std::size_t end) {
        if (progress_->cancel != nullptr) progress_->cancel->check();
        float local = 0;
        for (std::size_t i = begin; i < end; ++i) {
            local = std::max(local, half_codec_.error(vectors.data() + i * dimensions_));
        }
        const std::lock_guard lock(mutex);
        worst = std::max(worst, local);
    });
    half_scale_[0] = half_codec_.scale;
    half_scale_[1] = worst;
}

void IvfadcBuilder::calibrate(std::span<const float> vectors, ThreadPool& pool)
{
    progress_->report("calibrating", 0, 1);
    if (rows_ < 2) return;
    const std::vector<std::uint32_t> sample = sample_rows(rows_, calibration_sample(options_, rows_), seed + 2);
    const auto truth = calibration_truth(metric_, vectors, dimensions_, sample, pool, progress_->cancel);
    const std::vector<float> queries = gather_rows(vectors.data(), dimensions_, sample);
    const auto make_searcher = [this, &pool] {
        auto searcher = make_ivfadc_searcher(shape_, effective_options(), arrays());
        feed_searcher(*this, *searcher, pool);
        return searcher;
    };
    const IvfadcCalibration calibration{options_, metric_, dimensions_, centroids_,   list_of_row_,
                                        sample,   queries, truth,       make_searcher};
    calibration_ = calibration.run(*progress_, pool);
}

void IvfadcBuilder::keep_vectors(RowBuffer& rows)
{
    if (options_.keeps_full()) vectors_ = rows.vectors();
    if (options_.keeps_half() && !options_.keeps_full()) {
        progress_->report("writing half vectors", 0, rows_);
        halves_ = rows.compact_to_half([this](const float* row, std::uint16_t* out) { half_codec_.encode(row, out); });
    }
}

IvfadcArrays IvfadcBuilder::made() const
{
    const std::span<const float> codebooks = quantizer_ ? quantizer_->codebooks() : std::span<const float>();
    return {options_,    rows_,        dimensions_, centroids_, rotation_, codebooks,  half_codec_.mean,
            half_scale_, list_of_row_, codes_,      halves_,    vectors_,  code_scale_};
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<IvfadcBuilder>(shape, options);
}

}  // namespace pgwarp
