#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "index/arrays.h"
#include "index/calibrate.h"
#include "index/ivfadc/coverage.h"
#include "index/ivfadc/ivfadc.h"
#include "numeric/distance.h"
#include "numeric/half_codec.h"
#include "numeric/kmeans.h"
#include "numeric/product_quantizer.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

constexpr std::uint64_t seed = 0x70677761;
constexpr std::size_t rows_per_list = 40;      // of the sample that trains the lists (gpu notes: about 39 suffice)
constexpr std::size_t rows_per_codeword = 48;  // of the sample that trains the codebooks
constexpr std::size_t training_iterations = 6;
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
        if (options_.keeps_half()) train_half(rows.vectors(), pool);
        calibrate(rows.vectors(), pool);
        keep_vectors(rows);
    }
    std::vector<ArrayShape> arrays() const override;
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override;
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return options_.as_parameters(); }

private:
    void train_lists(std::span<const float> vectors, ThreadPool& pool);
    void assign_rows(std::span<const float> vectors, ThreadPool& pool);
    void make_codes(std::span<const float> vectors, ThreadPool& pool);
    void train_half(std::span<const float> vectors, ThreadPool& pool);
    void calibrate(std::span<const float> vectors, ThreadPool& pool);
    std::size_t calibration_sample() const;
    void keep_vectors(RowBuffer& rows);
    void residuals(std::span<const float> vectors, std::size_t first, std::size_t count, std::span<float> out,
                   ThreadPool& pool) const;
    std::vector<std::array<float, 4>> measure(const Searcher& searcher, std::span<const float> queries,
                                              const std::vector<std::uint32_t>& sample,
                                              const std::vector<std::vector<std::uint32_t>>& truth, std::int64_t probes,
                                              ThreadPool& pool) const;

    IndexShape shape_;
    Metric metric_;
    std::size_t dimensions_;
    ParameterList asked_;
    IvfOptions options_;
    std::size_t rows_ = 0;
    const BuildProgress* progress_ = nullptr;
    std::vector<float> centroids_;
    std::vector<std::uint32_t> list_of_row_;
    std::vector<float> rotation_;
    std::unique_ptr<ProductQuantizer> quantizer_;
    std::vector<std::uint8_t> codes_;
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
    training.iterations = training_iterations;
    training.seed = seed;
    training.spherical = metric_ == Metric::cosine;
    training.balanced = true;
    training.cancel = progress_->cancel;
    training.progress = [this](std::size_t done, std::size_t total) {
        progress_->report("training lists", done, total);
    };
    progress_->report("training lists", 0, training_iterations);
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
    if (!rotation_.empty()) rotate_rows(rotation_, dimensions_, plain, out, pool);
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
        rotation_ = train_rotation(sample, dimensions_, options_.subquantizers, seed, pool, progress_->cancel);
        const std::vector<float> plain = sample;
        rotate_rows(rotation_, dimensions_, plain, sample, pool);
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

void IvfadcBuilder::train_half(std::span<const float> vectors, ThreadPool& pool)
{
    progress_->report("measuring half vectors", 0, rows_);
    half_codec_ = HalfCodec::train(vectors, dimensions_);
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

// As many sample rows as keep the comparisons with all rows below a tenth of those that training and encoding take.
std::size_t IvfadcBuilder::calibration_sample() const
{
    const std::size_t trained = training_iterations * rows_per_list * options_.lists * options_.lists / rows_;
    return std::clamp<std::size_t>((options_.lists + trained + 4 * ProductQuantizer::codewords) / 20, 100, 500);
}

// Where rows are ranked by vectors they are kept as, recall is the share of true neighbours whose lists are probed:
// counted for all numbers of probes at once. Where codes alone rank them, real searches are made.
void IvfadcBuilder::calibrate(std::span<const float> vectors, ThreadPool& pool)
{
    progress_->report("calibrating", 0, 1);
    if (rows_ < 2) return;
    const std::size_t wanted = calibration_sample();
    const std::vector<std::uint32_t> sample = sample_rows(rows_, wanted, seed + 2);
    const auto truth = calibration_truth(metric_, vectors, dimensions_, sample, pool, progress_->cancel);
    const std::vector<float> queries = gather_rows(vectors.data(), dimensions_, sample);
    RecallCurve curve(sample.size());
    const std::vector<std::int64_t> schedule = probe_schedule(options_.lists);
    if (options_.product_codes && options_.refine == IvfRefine::none) {
        const std::unique_ptr<Searcher> searcher = make_ivfadc_searcher(shape_, effective_options(), arrays());
        feed_searcher(*this, *searcher, pool);
        for (std::size_t i = 0; i < schedule.size(); ++i) {
            progress_->report("calibrating", i, schedule.size());
            curve.add(schedule[i], measure(*searcher, queries, sample, truth, schedule[i], pool));
        }
    } else {
        const Coverage coverage(coarse_metric(metric_), queries, dimensions_, centroids_, list_of_row_, truth, pool);
        for (const std::int64_t probes : schedule) curve.add(probes, coverage.shares(probes));
    }
    calibration_ = curve.calibration();
}

// Shares of the true neighbours that real searches with so many probes find.
std::vector<std::array<float, 4>> IvfadcBuilder::measure(const Searcher& searcher, std::span<const float> queries,
                                                         const std::vector<std::uint32_t>& sample,
                                                         const std::vector<std::vector<std::uint32_t>>& truth,
                                                         std::int64_t probes, ThreadPool& pool) const
{
    std::vector<std::array<float, 4>> shares(sample.size(), {-1, -1, -1, -1});
    for (std::size_t column = 0; column < 3; ++column) {
        const std::size_t k = Calibration::ks[column];
        SearchBatch batch;
        batch.queries = queries;
        batch.count = sample.size();
        batch.k = static_cast<std::uint32_t>(k + 1);
        batch.effort = probes;
        batch.cancel = progress_->cancel;
        std::vector<std::vector<RowResult>> results;
        searcher.search(batch, results, pool);
        for (std::size_t q = 0; q < sample.size(); ++q) {
            const std::size_t true_count = std::min(k, truth[q].size());
            if (true_count == 0) continue;
            std::vector<std::uint32_t> wanted(truth[q].begin(),
                                              truth[q].begin() + static_cast<std::ptrdiff_t>(true_count));
            std::sort(wanted.begin(), wanted.end());
            std::size_t seen = 0;
            std::size_t found = 0;
            for (const RowResult& result : results[q]) {
                if (result.row == sample[q]) continue;
                if (seen++ == k) break;
                found += std::binary_search(wanted.begin(), wanted.end(), result.row) ? 1 : 0;
            }
            shares[q][column] = static_cast<float>(found) / static_cast<float>(true_count);
        }
    }
    return shares;
}

void IvfadcBuilder::keep_vectors(RowBuffer& rows)
{
    if (options_.keeps_full()) vectors_ = rows.vectors();
    if (options_.keeps_half() && !options_.keeps_full()) {
        progress_->report("writing half vectors", 0, rows_);
        halves_ = rows.compact_to_half([this](const float* row, std::uint16_t* out) { half_codec_.encode(row, out); });
    }
}

std::vector<ArrayShape> IvfadcBuilder::arrays() const
{
    std::vector<ArrayShape> shapes;
    shapes.push_back(make_array_shape(array_centroids, ArrayType::f32, options_.lists, dimensions_));
    if (!rotation_.empty())
        shapes.push_back(make_array_shape(array_rotation, ArrayType::f32, dimensions_, dimensions_));
    if (options_.product_codes) {
        shapes.push_back(make_array_shape(array_codebooks, ArrayType::f32, ProductQuantizer::codewords, dimensions_));
    }
    if (options_.keeps_half() && !options_.keeps_full()) {
        shapes.push_back(make_array_shape(array_half_mean, ArrayType::f32, 1, dimensions_));
        shapes.push_back(make_array_shape(array_half_scale, ArrayType::f32, 1, 2));
    }
    shapes.push_back(make_array_shape(array_list_of_row, ArrayType::u32, rows_, 1));
    if (options_.product_codes) {
        shapes.push_back(make_array_shape(array_codes, ArrayType::u8, rows_, options_.subquantizers));
    }
    if (options_.keeps_half() && !options_.keeps_full()) {
        shapes.push_back(make_array_shape(array_half, ArrayType::f16, rows_, dimensions_));
    }
    if (options_.keeps_full()) shapes.push_back(make_array_shape(array_vectors, ArrayType::f32, rows_, dimensions_));
    return shapes;
}

void IvfadcBuilder::read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const
{
    if (array == array_centroids) return read_piece(std::span<const float>(centroids_), offset, out);
    if (array == array_rotation) return read_piece(std::span<const float>(rotation_), offset, out);
    if (array == array_codebooks) return read_piece(std::span<const float>(quantizer_->codebooks()), offset, out);
    if (array == array_half_mean) return read_piece(std::span<const float>(half_codec_.mean), offset, out);
    if (array == array_half_scale) return read_piece(std::span<const float>(half_scale_), offset, out);
    if (array == array_list_of_row) return read_piece(std::span<const std::uint32_t>(list_of_row_), offset, out);
    if (array == array_codes) return read_piece(std::span<const std::uint8_t>(codes_), offset, out);
    if (array == array_half) return read_piece(halves_, offset, out);
    if (array == array_vectors) return read_piece(vectors_, offset, out);
    throw BadRequest("unknown array of an ivfadc build");
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<IvfadcBuilder>(shape, options);
}

}  // namespace pgwarp
