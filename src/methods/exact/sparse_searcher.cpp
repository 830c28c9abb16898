// Exact search over sparse vectors: every row is compared with the query. Scores (sparse_score.h) pass over the rows
// that are certainly no results; the others get their canonical distances.
#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "methods/arrays.h"
#include "methods/certain_rows.h"
#include "methods/exact/exact.h"
#include "methods/exact/sparse_score.h"
#include "methods/ordered_scan.h"
#include "methods/rows/sparse_rows.h"
#include "methods/rows/stored_lists.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t sparse_piece_rows = 4096;            // that a thread compares at a time
constexpr std::size_t block_words = std::size_t{1} << 13;  // of rows, which stay in the cache for the next query
constexpr std::size_t most_sparse_rows = 512;
constexpr std::size_t most_queries = 16;  // that a block is compared with
// Scores have an array of this many floats at most; that of a thread's queries stays in the second cache.
constexpr std::size_t most_scored_dimensions = std::size_t{1} << 20;
constexpr std::size_t scorer_floats = std::size_t{1} << 18;

// A query of a batch, with the rows that it found until now.
struct Asked {
    std::size_t number;  // in the batch
    SparseView vector;
    RowResult after;            // results up to this one are left out
    const SparseScorer* score;  // null: every row gets its canonical distance
    double scaled_after;        // by `score`
    FirstRows found;
    double farthest = std::numeric_limits<double>::infinity();  // behind which no row is found, scaled by `score`
};

class SparseSearcher : public Searcher
{
public:
    SparseSearcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
        : metric_(static_cast<Metric>(shape.metric)), dimensions_(shape.dimensions), stored_(shape, arrays)
    {
        const ArrayShape* offsets = find_array(arrays, array_list_offsets);
        if (offsets != nullptr && offsets->rows > 0) sizes_.resize(offsets->rows - 1);
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_.write(array, offset, bytes)) throw BadRequest("unknown array of sparse vectors");
    }
    void finish_load(ThreadPool& pool) override
    {
        stored_.finish_load();
        rows_ = stored_.rows();
        pool.parallel_for(rows_.count, sparse_piece_rows, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) sizes_[i] = sparse_size(metric_, row(i));
        });
    }
    std::uint64_t memory_bytes() const override { return stored_.memory_bytes() + sizes_.size() * sizeof(double); }
    ResultKind result_kind() const override { return ResultKind::exact; }
    // Reads the elements of all rows.
    double search_cost(const SearchBatch& batch) const override
    {
        return 2.0 * static_cast<double>(batch.count) * static_cast<double>(rows_.count + rows_.word_count());
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        results = search_one(batch, 0, {after_distance, after_row}, pool);
    }
    bool finds_all() const override { return true; }
    bool takes_filters() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        compare_sparse_rows(metric_, query, rows, out);
    }
    bool compares_certain_rows() const override { return true; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        for_queries(batch, pool, [&](std::size_t q) {
            const SparseView query = sparse_row(batch.lists, q);
            const auto value = [&](std::uint32_t i) { return sparse_distance(metric_, query, row(i)); };
            results[q] = value_certain_rows(batch, rows[q], after, value, pool);
        });
    }

private:
    SparseView row(std::size_t i) const { return sparse_row(rows_, i); }
    // The array of scores takes as long to clear as many elements take to compare.
    bool has_scores() const
    {
        return dimensions_ > 0 && dimensions_ <= std::min<std::uint64_t>(most_scored_dimensions, rows_.word_count());
    }
    std::optional<SparseScorer> scorer_of(const SearchBatch& batch, std::size_t number) const
    {
        if (!has_scores()) return {};
        return SparseScorer(metric_, sparse_row(batch.lists, number), dimensions_);
    }
    std::size_t block_rows() const;
    bool is_passed_over(const Asked& asked, std::size_t i) const;
    void compare(const SearchBatch& batch, std::size_t begin, std::size_t end, Asked& asked) const;
    std::vector<RowResult> search_one(const SearchBatch& batch, std::size_t number, const RowResult& after,
                                      ThreadPool& pool) const;
    void search_some(const SearchBatch& batch, std::size_t first, std::size_t last,
                     std::vector<std::vector<RowResult>>& results) const;

    Metric metric_;
    std::size_t dimensions_;
    StoredLists stored_;
    RowView rows_;               // after loading
    std::vector<double> sizes_;  // sparse_size() of each row
};

Asked make_asked(const SearchBatch& batch, std::size_t number, const RowResult& after, const SparseScorer* score)
{
    const double scaled = score != nullptr ? score->scaled(after.distance) : 0;
    return {number, sparse_row(batch.lists, number), after, score, scaled, FirstRows(batch.k)};
}

std::size_t SparseSearcher::block_rows() const
{
    return std::clamp<std::size_t>(block_words * rows_.count / (rows_.word_count() + 1), 1, most_sparse_rows);
}

// Whether a row lies before the cursor or behind the farthest result, as its score proves. Comparisons with NaN are
// false: a row without a distance is no result.
bool SparseSearcher::is_passed_over(const Asked& asked, std::size_t i) const
{
    if (asked.score == nullptr) return false;
    const ScoreBounds bounds = asked.score->bounds(row(i), sizes_[i]);
    return !(bounds.lower <= asked.farthest && bounds.upper >= asked.scaled_after);
}

void SparseSearcher::compare(const SearchBatch& batch, std::size_t begin, std::size_t end, Asked& asked) const
{
    batch.check_cancel();
    for (std::size_t i = begin; i < end; ++i) {
        if (is_passed_over(asked, i) || batch.leaves_out(asked.number, i)) continue;
        const RowResult result{sparse_distance(metric_, asked.vector, row(i)), static_cast<std::uint32_t>(i)};
        if (!comes_before(asked.after, result)) continue;
        asked.found.offer(result);
        if (asked.score != nullptr && asked.found.full())
            asked.farthest = asked.score->scaled(asked.found.last_distance());
    }
}

// Threads share the rows.
std::vector<RowResult> SparseSearcher::search_one(const SearchBatch& batch, std::size_t number, const RowResult& after,
                                                  ThreadPool& pool) const
{
    if (batch.k == 0) return {};
    const std::optional<SparseScorer> score = scorer_of(batch, number);
    const Asked asked = make_asked(batch, number, after, score ? &*score : nullptr);
    FirstRows all(batch.k);
    std::mutex mutex;
    pool.parallel_for(rows_.count, sparse_piece_rows, [&](std::size_t begin, std::size_t end) {
        Asked some = asked;
        for (std::size_t at = begin; at < end; at += most_sparse_rows)
            compare(batch, at, std::min(end, at + most_sparse_rows), some);
        const std::lock_guard lock(mutex);
        all.merge(some.found);
    });
    return all.take_sorted();
}

// Compares blocks of rows with each of the queries [first, last).
void SparseSearcher::search_some(const SearchBatch& batch, std::size_t first, std::size_t last,
                                 std::vector<std::vector<RowResult>>& results) const
{
    std::vector<std::optional<SparseScorer>> scores;
    for (std::size_t q = first; q < last; ++q) scores.push_back(scorer_of(batch, q));
    std::vector<Asked> asked;
    for (std::size_t q = first; q < last; ++q) {
        const auto& score = scores[q - first];
        asked.push_back(make_asked(batch, q, before_all, score ? &*score : nullptr));
    }
    const std::size_t step = block_rows();
    for (std::size_t at = 0; at < rows_.count; at += step)
        for (Asked& query : asked) compare(batch, at, std::min(rows_.count, at + step), query);
    for (Asked& query : asked) results[query.number] = query.found.take_sorted();
}

void SparseSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                            ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (rows_.count == 0 || batch.k == 0) return;
    // Few queries are spread over the threads, many get one thread each.
    if (batch.count < pool.threads()) {
        for (std::size_t q = 0; q < batch.count; ++q) results[q] = search_one(batch, q, before_all, pool);
        return;
    }
    const std::size_t most =
        has_scores() ? std::clamp<std::size_t>(scorer_floats / dimensions_, 1, most_queries) : most_queries;
    const std::size_t grain = std::clamp<std::size_t>(batch.count / pool.threads(), 1, most);
    pool.parallel_for(batch.count, grain, [&](std::size_t first, std::size_t last) {
        for (std::size_t at = first; at < last; at += grain)
            search_some(batch, at, std::min(last, at + grain), results);
    });
}

}  // namespace

std::unique_ptr<Searcher> make_exact_sparse_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
{
    return std::make_unique<SparseSearcher>(shape, arrays);
}

}  // namespace pgwarp
