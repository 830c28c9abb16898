// Exact search over rows of floats and halves.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/bulk_memory.h"
#include "methods/certain_rows.h"
#include "methods/exact/exact.h"
#include "methods/ordered_scan.h"
#include "numeric/distance.h"
#include "numeric/half_codec.h"
#include "numeric/top_k.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t block_rows = 512;
constexpr std::size_t piece_rows = 8192;
constexpr std::size_t tile_queries = 16;
constexpr std::size_t widened_floats = std::size_t{1} << 18;  // of a tile's rows, decoded from halves
constexpr std::size_t fewest_widened = 16;
constexpr std::size_t tile_threshold = 8;  // queries from which a matrix product beats scanning for each

// Proposes rows by fast scores, proves by the error bound of scores that no better row was left out, and returns
// canonical distances.
class ExactSearcher : public Searcher
{
public:
    ExactSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays)
        : metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          in_halves_(keeps_halves(shape)),
          use_half_(options.get("vectors", 0) == 1 && metric_ != Metric::l1 && !in_halves_)
    {
        const ArrayShape* vectors = find_array(arrays, array_vectors);
        rows_ = vectors != nullptr ? vectors->rows : 0;
        const ArrayType type = in_halves_ ? ArrayType::f16 : ArrayType::f32;
        if (vectors != nullptr) require_array(arrays, array_vectors, type, rows_, dimensions_);
        if (in_halves_) {
            halves_.resize(rows_ * dimensions_);
        } else {
            vectors_.resize(rows_ * dimensions_);
        }
    }

    void write(const std::string&, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (in_halves_) return write_piece(std::span<half_bits>(halves_), offset, bytes);
        write_piece(std::span<float>(vectors_), offset, bytes);
    }

    void finish_load(ThreadPool& pool) override
    {
        norms_.resize(rows_);
        if (in_halves_ && metric_ == Metric::cosine) inverse_norms_.resize(rows_);
        pool.parallel_for(rows_, piece_rows, [&](std::size_t begin, std::size_t end) {
            if (in_halves_) return measure_halves(begin, end);
            squared_norms(row(begin), end - begin, dimensions_, norms_.data() + begin);
        });
        for (const float norm : norms_) largest_norm_ = std::max(largest_norm_, std::sqrt(norm) * (1 + 1e-5F));
        if (metric_ == Metric::l1) largest_norm_ *= std::sqrt(static_cast<float>(dimensions_));
        if (use_half_) make_halves(pool);
    }

    std::uint64_t memory_bytes() const override
    {
        return (vectors_.size() + norms_.size() + inverse_norms_.size()) * sizeof(float) +
               halves_.size() * sizeof(half_bits);
    }
    double bound_width(const float*) const override { return pgwarp::bound_width(metric_, 0, 1); }
    ResultKind result_kind() const override { return promise_of_vectors(metric_ == Metric::cosine).kind; }
    double search_cost(const SearchBatch& batch) const override
    {
        return 2.0 * static_cast<double>(batch.count) * static_cast<double>(rows_) * static_cast<double>(dimensions_);
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        results = scan(batch, 0, after_distance, after_row, pool);
    }
    // Searches of all rows test by the filter only rows that are near enough.
    bool finds_all() const override { return true; }
    bool takes_filters() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_certain_rows() const override { return true; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override;

private:
    const float* row(std::size_t i) const { return vectors_.data() + i * dimensions_; }
    const half_bits* half_row(std::size_t i) const { return halves_.data() + i * dimensions_; }

    // Returns the value to be emitted for a row.
    double value(const float* query, std::size_t i) const
    {
        const double distance =
            in_halves_ ? distance_to_halves(query, i) : canonical_distance(metric_, query, row(i), dimensions_);
        return metric_ == Metric::cosine ? lower_bound(metric_, distance, 0, 1) : distance;
    }

    const float* query_of(const SearchBatch& batch, std::size_t number) const
    {
        return batch.queries.data() + number * dimensions_;
    }

    std::vector<RowResult> scan(const SearchBatch& batch, std::size_t number, double after_distance,
                                std::uint32_t after_row, ThreadPool& pool) const
    {
        const float* query = query_of(batch, number);
        SearchBatch one = batch;
        if (!batch.filters.empty()) one.filters = batch.filters.subspan(number, 1);
        return scan_in_order(
            rows_, one, after_distance, after_row, row_itself, [&](std::size_t i) { return value(query, i); }, pool);
    }

    void make_halves(ThreadPool& pool);
    void measure_halves(std::size_t begin, std::size_t end);
    double distance_to_halves(const float* query, std::size_t i) const;
    void widen(std::size_t first, std::size_t count, float* out) const;
    void score_rows(const float* query, std::size_t first, std::size_t count, float* out) const;
    float proof_threshold(float score, float query_norm) const;
    bool is_in_range(float query_norm) const;
    double score_error(float query_norm) const;
    std::vector<RowResult> search_one_among(const SearchBatch& batch, std::size_t number, RowList rows,
                                            ThreadPool& pool) const;
    float query_norm(const float* query) const;
    std::vector<Candidate> propose(const SearchBatch& batch, std::size_t number, std::size_t count,
                                   ThreadPool& pool) const;
    void propose_tile(const SearchBatch& batch, std::size_t first, std::size_t queries, std::vector<TopK>& best) const;
    void rank(const SearchBatch& batch, std::size_t number, std::vector<Candidate> candidates, std::size_t asked,
              std::vector<RowResult>& result, ThreadPool& pool) const;
    void push_scores(const SearchBatch& batch, std::size_t number, const float* scores, std::size_t count,
                     std::size_t first, TopK& best) const;

    Metric metric_;
    std::size_t dimensions_;
    bool in_halves_;  // rows are stored as halves, for cosine of any length
    bool use_half_;   // halves of rows in floats propose
    std::size_t rows_ = 0;
    BulkVector<float> vectors_;
    std::vector<float> norms_;          // squared L2
    std::vector<float> inverse_norms_;  // of rows in halves, for cosine
    float largest_norm_ = 0;            // L2, or a bound of the L1 norm for l1
    HalfCodec codec_;
    BulkVector<half_bits> halves_;  // the rows, or the halves that propose
    float half_error_ = 0;
};

void ExactSearcher::make_halves(ThreadPool& pool)
{
    codec_ = HalfCodec::train(vectors_, dimensions_);
    halves_.resize(rows_ * dimensions_);
    std::mutex mutex;
    pool.parallel_for(rows_, piece_rows, [&](std::size_t begin, std::size_t end) {
        float worst = 0;
        for (std::size_t i = begin; i < end; ++i) {
            codec_.encode(row(i), halves_.data() + i * dimensions_);
            worst = std::max(worst, codec_.error(row(i)));
        }
        const std::lock_guard lock(mutex);
        half_error_ = std::max(half_error_, worst);
    });
}

// Computes norms of rows in halves: of unit length for cosine, as they are scored.
void ExactSearcher::measure_halves(std::size_t begin, std::size_t end)
{
    std::vector<float> values(dimensions_);
    for (std::size_t i = begin; i < end; ++i) {
        if (metric_ == Metric::cosine) {
            inverse_norms_[i] = static_cast<float>(1 / canonical_norm(half_row(i), dimensions_));
            norms_[i] = 1;
        } else {
            widen(i, 1, values.data());
            norms_[i] = squared_norm(values.data(), dimensions_);
        }
    }
}

// Compares unit vectors in floats for cosine, the form in which rows in floats are stored and devices keep these rows:
// the same bits everywhere.
double ExactSearcher::distance_to_halves(const float* query, std::size_t i) const
{
    if (metric_ != Metric::cosine) return canonical_distance(metric_, query, half_row(i), dimensions_);
    float unit[max_dimensions];
    const double norm = canonical_norm(half_row(i), dimensions_);
    from_half(half_row(i), dimensions_, unit);
    for (std::size_t d = 0; d < dimensions_; ++d) unit[d] = static_cast<float>(unit[d] / norm);
    return canonical_distance(metric_, query, unit, dimensions_);
}

// Decodes rows in halves as they are scored: for cosine to unit length.
void ExactSearcher::widen(std::size_t first, std::size_t count, float* out) const
{
    from_half(half_row(first), count * dimensions_, out);
    if (metric_ != Metric::cosine) return;
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t d = 0; d < dimensions_; ++d) out[i * dimensions_ + d] *= inverse_norms_[first + i];
    }
}

// Scores rows in their stored form. The inverse norms of halves add two roundings; score_error_bound() allows for four.
void ExactSearcher::score_rows(const float* query, std::size_t first, std::size_t count, float* out) const
{
    if (!in_halves_) return scores(metric_, query, row(first), count, dimensions_, out);
    half_scores(metric_, query, half_row(first), count, dimensions_, out);
    if (metric_ != Metric::cosine) return;
    for (std::size_t i = 0; i < count; ++i) out[i] *= inverse_norms_[first + i];
}

float ExactSearcher::query_norm(const float* query) const
{
    if (metric_ != Metric::l1) return static_cast<float>(canonical_norm(query, dimensions_)) * (1 + 1e-6F);
    double sum = 0;
    for (std::size_t d = 0; d < dimensions_; ++d) sum += std::fabs(query[d]);
    return static_cast<float>(sum) * (1 + 1e-6F);
}

// The largest difference between the errors of two scores.
double ExactSearcher::score_error(float query_norm) const
{
    return 2.0 * score_error_bound(metric_, dimensions_, query_norm, largest_norm_);
}

// Beyond float's range scores propose nothing.
bool ExactSearcher::is_in_range(float query_norm) const
{
    return std::isfinite((query_norm + largest_norm_) * (query_norm + largest_norm_) * 2);
}

// Rows with a score above this can't be among the k nearest, when `score` is the k-th smallest.
float ExactSearcher::proof_threshold(float score, float query_norm) const
{
    const double error = score_error(query_norm);
    if (!use_half_) return static_cast<float>(score + error) + std::fabs(score) * 1e-6F;
    if (metric_ == Metric::l2) {
        // Scores are squared distances to rows moved by at most half_error_.
        const double distance = std::sqrt(std::max(0.0, score + error)) + 2.0 * half_error_;
        return static_cast<float>((distance * distance + error) * (1 + 1e-6));
    }
    return static_cast<float>(score + error + 2.0 * query_norm * half_error_) + std::fabs(score) * 1e-6F;
}

// Pushes a block of scores, without the rows that the query leaves out.
void ExactSearcher::push_scores(const SearchBatch& batch, std::size_t number, const float* scores, std::size_t count,
                                std::size_t first, TopK& best) const
{
    if (batch.dead.empty() && batch.filters.empty())
        return best.push_block(scores, count, static_cast<std::uint32_t>(first));
    for (std::size_t i = 0; i < count; ++i) {
        if (scores[i] < best.threshold() && !batch.leaves_out(number, first + i)) {
            best.push(scores[i], static_cast<std::uint32_t>(first + i));
        }
    }
}

// The `count` rows of smallest score for one query.
std::vector<Candidate> ExactSearcher::propose(const SearchBatch& batch, std::size_t number, std::size_t count,
                                              ThreadPool& pool) const
{
    const float* query = query_of(batch, number);
    std::vector<float> moved;
    float factor = 1;
    if (use_half_) {
        // Moves the query into the codec's space. Squared distances there are larger by scale^2; dot products lack the
        // product of the query and the mean, a constant.
        moved.assign(query, query + dimensions_);
        if (metric_ == Metric::l2) {
            for (std::size_t d = 0; d < dimensions_; ++d) moved[d] = (query[d] - codec_.mean[d]) * codec_.scale;
            factor = 1 / codec_.scale / codec_.scale;
        } else {
            factor = 1 / codec_.scale;
        }
    }
    const float shift = use_half_ && metric_ != Metric::l2
                            ? static_cast<float>(-canonical_dot(query, codec_.mean.data(), dimensions_))
                            : 0.0F;
    TopK best(count);
    std::mutex mutex;
    pool.parallel_for(rows_, piece_rows, [&](std::size_t begin, std::size_t end) {
        batch.check_cancel();
        TopK local(count);
        float block[block_rows];
        for (std::size_t first = begin; first < end; first += block_rows) {
            const std::size_t width = std::min(block_rows, end - first);
            if (use_half_) {
                half_scores(metric_, moved.data(), halves_.data() + first * dimensions_, width, dimensions_, block);
                for (std::size_t i = 0; i < width; ++i) block[i] = block[i] * factor + shift;
            } else {
                score_rows(query, first, width, block);
            }
            push_scores(batch, number, block, width, first, local);
        }
        const std::lock_guard lock(mutex);
        best.merge(local);
    });
    return best.take_sorted();
}

// Canonical distances of the candidates; more candidates when the proof fails.
void ExactSearcher::rank(const SearchBatch& batch, std::size_t number, std::vector<Candidate> candidates,
                         std::size_t asked, std::vector<RowResult>& result, ThreadPool& pool) const
{
    const float* query = query_of(batch, number);
    const float norm = query_norm(query);
    const bool in_range = is_in_range(norm);
    while ((candidates.size() == asked && asked < rows_) || !in_range) {
        if (in_range && candidates.back().score > proof_threshold(candidates[batch.k - 1].score, norm)) break;
        asked = std::min(rows_, asked * 4);
        if (!in_range || asked * 4 >= rows_) {
            result = scan(batch, number, -HUGE_VAL, 0, pool);
            return;
        }
        candidates = propose(batch, number, asked, pool);
    }
    FirstRows first(batch.k);
    for (const Candidate& candidate : candidates) first.offer({value(query, candidate.row), candidate.row});
    result = first.take_sorted();
}

// Proposals of several queries at once, by matrix products.
void ExactSearcher::propose_tile(const SearchBatch& batch, std::size_t first, std::size_t queries,
                                 std::vector<TopK>& best) const
{
    std::vector<float> tile(queries * block_rows);
    const std::size_t step =
        in_halves_ ? std::clamp(widened_floats / dimensions_, fewest_widened, block_rows) : block_rows;
    std::vector<float> widened(in_halves_ ? step * dimensions_ : 0);
    for (std::size_t begin = 0; begin < rows_; begin += step) {
        batch.check_cancel();
        const std::size_t width = std::min(step, rows_ - begin);
        if (in_halves_) widen(begin, width, widened.data());
        score_tile(metric_, batch.queries.data() + first * dimensions_, queries,
                   in_halves_ ? widened.data() : row(begin), norms_.data() + begin, width, dimensions_, tile.data());
        for (std::size_t q = 0; q < queries; ++q)
            push_scores(batch, first + q, tile.data() + q * width, width, begin, best[q]);
    }
}

void ExactSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                           ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (rows_ == 0 || batch.k == 0) return;
    const std::size_t asked = std::min<std::size_t>(rows_, batch.k + 16);
    const std::size_t k = std::min<std::size_t>(batch.k, rows_);
    SearchBatch bounded = batch;
    bounded.k = static_cast<std::uint32_t>(k);
    if (batch.count < tile_threshold || use_half_) {
        for (std::size_t q = 0; q < batch.count; ++q) {
            rank(bounded, q, propose(batch, q, asked, pool), asked, results[q], pool);
        }
        return;
    }
    pool.parallel_for(batch.count, tile_queries, [&](std::size_t begin, std::size_t end) {
        std::vector<TopK> best(end - begin, TopK(asked));
        propose_tile(batch, begin, end - begin, best);
        for (std::size_t q = begin; q < end; ++q) {
            std::vector<Candidate> candidates = best[q - begin].take_sorted();
            // Tile scores of l2 lack the query's own norm, which the proof needs.
            if (metric_ == Metric::l2) {
                const float own = squared_norm(query_of(batch, q), dimensions_);
                for (Candidate& candidate : candidates) candidate.score += own;
            }
            rank(bounded, q, std::move(candidates), asked, results[q], pool);
        }
    });
}

// Scores propose a few more rows than k; where these don't prove the answer, all values are compared.
std::vector<RowResult> ExactSearcher::search_one_among(const SearchBatch& batch, std::size_t number, RowList rows,
                                                       ThreadPool& pool) const
{
    const float* query = query_of(batch, number);
    const float norm = query_norm(query);
    const std::size_t asked = std::size_t{batch.k} + 16;
    const auto value_of = [&](std::uint32_t row) { return value(query, row); };
    if (rows.size() <= asked || !is_in_range(norm)) return value_certain_rows(batch, rows, before_all, value_of, pool);
    const auto score_some = [&](RowList some, float* out) {
        if (!in_halves_)
            return scores_gather(metric_, query, vectors_.data(), some.data(), some.size(), dimensions_, out);
        half_scores_gather(metric_, query, halves_.data(), some.data(), some.size(), dimensions_, out);
        for (std::size_t i = 0; metric_ == Metric::cosine && i < some.size(); ++i) out[i] *= inverse_norms_[some[i]];
    };
    const std::vector<Candidate> proposed = propose_certain_rows(batch, rows, asked, score_some, pool);
    if (proposed.size() == asked) {
        const float kth = proposed[batch.k - 1].score;
        const double limit = kth + score_error(norm) + std::fabs(kth) * 1e-6;
        if (proposed.back().score <= limit) return value_certain_rows(batch, rows, before_all, value_of, pool);
    }
    return value_certain_rows(batch, rows_of(proposed), before_all, value_of, pool);
}

void ExactSearcher::search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                                 std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (batch.k == 0) return;
    for_queries(batch, pool, [&](std::size_t q) {
        if (after.distance == before_all.distance) {
            results[q] = search_one_among(batch, q, rows[q], pool);
        } else {
            const auto value_of = [&](std::uint32_t row) { return value(query_of(batch, q), row); };
            results[q] = value_certain_rows(batch, rows[q], after, value_of, pool);
        }
    });
}

}  // namespace

std::unique_ptr<Searcher> make_exact_searcher(const IndexShape& shape, const ParameterList& options,
                                              std::span<const ArrayShape> arrays)
{
    if (is_list(shape.element)) return make_exact_sparse_searcher(shape, arrays);
    if (is_of_bits(static_cast<Metric>(shape.metric))) return make_bit_searcher(shape, arrays);
    return std::make_unique<ExactSearcher>(shape, options, arrays);
}

}  // namespace pgwarp
