// Searches of vectors: the rows of largest match count, by a scan of all signatures, are ranked by their distances.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/bulk_memory.h"
#include "methods/matchcount/count_gate.h"
#include "methods/matchcount/matchcount.h"
#include "methods/ordered_scan.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t piece_rows = 16384;
constexpr std::size_t block_bytes = std::size_t{1} << 15;  // of signatures, which stay in the cache for the next query
constexpr std::size_t most_block_rows = 1024;
constexpr std::size_t together = 16;     // queries that a block is compared with
constexpr std::size_t rank_grain = 256;  // candidates that a thread ranks at a time

std::size_t rows_of(std::span<const ArrayShape> arrays)
{
    const ArrayShape* vectors = find_array(arrays, array_vectors);
    return vectors != nullptr ? vectors->rows : 0;
}

class VectorSearcher : public Searcher
{
public:
    VectorSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays)
        : rows_(rows_of(arrays)), hashes_(hash_form(shape, options), shape.dimensions)
    {
        if (rows_ == 0) return;
        const ArrayShape functions = hashes_.shape();
        require_array(arrays, array_hashes, functions.type, functions.rows, functions.width);
        require_array(arrays, array_signatures, ArrayType::u8, rows_, hashes_.signature_bytes());
        require_array(arrays, array_vectors, ArrayType::f32, rows_, hashes_.dimensions());
        signatures_.resize(rows_ * hashes_.signature_bytes());
        vectors_.resize(rows_ * hashes_.dimensions());
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array == array_hashes) {
            write_piece(hashes_.parameters(), offset, bytes);
        } else if (array == array_signatures) {
            write_piece(std::span<std::uint8_t>(signatures_), offset, bytes);
        } else if (array == array_vectors) {
            write_piece(std::span<float>(vectors_), offset, bytes);
        } else {
            throw BadRequest("unknown array of signatures");
        }
    }
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override
    {
        return signatures_.size() + (vectors_.size() + hashes_.parameters().size()) * sizeof(float);
    }
    ResultKind result_kind() const override { return promise_of_vectors(metric() == Metric::cosine).kind; }
    double bound_width(const float*) const override { return pgwarp::bound_width(metric(), 0, 1); }
    double search_cost(const SearchBatch& batch) const override
    {
        const auto compared = static_cast<double>(rows_) * static_cast<double>(hashes_.signature_bytes()) / 2;
        const auto ranked = 2.0 * static_cast<double>(candidates_of(batch) * hashes_.dimensions());
        return static_cast<double>(batch.count) * (compared + ranked);
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set(parameter_candidates, static_cast<std::int64_t>(candidates_of(batch)));
        return settings;
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        RungResults of_rungs;
        if (batch.settings.get(setting_estimate, 0) != 0) return estimate(batch, results, pool);
        const SearchRung alone{batch.effort, batch.k, 0};
        search_rungs(batch, {&alone, 1}, of_rungs, pool);
        results = std::move(of_rungs[0]);
    }
    void search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                      ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        const float* query = batch.queries.data();
        results = scan_in_order(
            rows_, batch, after_distance, after_row,
            [&](std::size_t row) {
                return RowResult{value(query, row), static_cast<std::uint32_t>(row)};
            },
            pool);
    }

private:
    Metric metric() const { return hashes_.form().metric; }
    std::size_t block_rows() const
    {
        return std::clamp<std::size_t>(block_bytes / hashes_.signature_bytes(), 1, most_block_rows);
    }
    // Returns the value to be emitted for a row.
    double value(const float* query, std::size_t row) const
    {
        const std::size_t dimensions = hashes_.dimensions();
        const double distance = canonical_distance(metric(), query, vectors_.data() + row * dimensions, dimensions);
        return metric() == Metric::cosine ? lower_bound(metric(), distance, 0, 1) : distance;
    }
    std::size_t candidates_of(const SearchBatch& batch) const { return matchcount::candidates_of(batch, rows_); }
    void compare(const SearchBatch& batch, const std::uint8_t* signature, std::size_t begin, std::size_t end,
                 CountGate& gate) const;
    std::vector<std::vector<CountedRow>> find_candidates(const SearchBatch& batch, std::size_t wanted,
                                                         ThreadPool& pool) const;
    std::vector<CountedRow> all_rows(const SearchBatch& batch) const;
    void estimate(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const;
    std::vector<CountedRow> find_by_pieces(const SearchBatch& batch, const std::uint8_t* signature, std::size_t wanted,
                                           ThreadPool& pool) const;
    void rank(std::span<const SearchBatch> rungs, std::size_t query, std::span<const CountedRow> candidates,
              ThreadPool& pool, RungResults& results) const;

    std::size_t rows_;
    VectorHashes hashes_;
    BulkVector<std::uint8_t> signatures_;  // [rows][signature_bytes]
    BulkVector<float> vectors_;            // [rows][dimensions]
};

// Offers the live rows of a block to the gate.
void VectorSearcher::compare(const SearchBatch& batch, const std::uint8_t* signature, std::size_t begin,
                             std::size_t end, CountGate& gate) const
{
    std::uint16_t counts[most_block_rows];
    hashes_.count_matches(signature, signatures_.data() + begin * hashes_.signature_bytes(), end - begin, counts);
    for (std::size_t row = begin; row < end; ++row) {
        if (counts[row - begin] >= gate.threshold() && !bit_is_set(batch.dead, row))
            gate.pass(static_cast<std::uint32_t>(row), counts[row - begin]);
    }
}

// The threads share the rows.
std::vector<CountedRow> VectorSearcher::find_by_pieces(const SearchBatch& batch, const std::uint8_t* signature,
                                                       std::size_t wanted, ThreadPool& pool) const
{
    std::vector<CountedRow> found;
    std::mutex mutex;
    const std::size_t share = (rows_ + pool.threads() - 1) / pool.threads();
    pool.parallel_for(rows_, std::max(piece_rows, share), [&](std::size_t begin, std::size_t end) {
        CountGate gate(wanted, hashes_.form().functions);
        for (std::size_t at = begin; at < end; at += block_rows()) {
            batch.check_cancel();
            compare(batch, signature, at, std::min(end, at + block_rows()), gate);
        }
        const std::vector<CountedRow> some = gate.take();
        const std::lock_guard lock(mutex);
        found.insert(found.end(), some.begin(), some.end());
    });
    return rows_of_largest_count(std::move(found), wanted);
}

// Returns the live rows without their counts.
std::vector<CountedRow> VectorSearcher::all_rows(const SearchBatch& batch) const
{
    std::vector<CountedRow> rows;
    for (const std::uint32_t row : rows_outside(batch.dead, rows_)) rows.push_back({row, 0});
    return rows;
}

// Returns for each query the live rows of largest match count, largest first, ties by row.
std::vector<std::vector<CountedRow>> VectorSearcher::find_candidates(const SearchBatch& batch, std::size_t wanted,
                                                                     ThreadPool& pool) const
{
    std::vector<std::vector<CountedRow>> found(batch.count);
    const std::size_t bytes = hashes_.signature_bytes();
    std::vector<std::uint8_t> signatures(batch.count * bytes);
    hashes_.sign(batch.queries.first(batch.count * hashes_.dimensions()), signatures.data(), pool, batch.cancel);
    if (batch.count < pool.threads()) {
        for (std::size_t q = 0; q < batch.count; ++q)
            found[q] = find_by_pieces(batch, signatures.data() + q * bytes, wanted, pool);
        return found;
    }
    const std::size_t grain = std::clamp<std::size_t>(batch.count / pool.threads(), 1, together);
    pool.parallel_for(batch.count, grain, [&](std::size_t first, std::size_t last) {
        std::vector<CountGate> gates(last - first, CountGate(wanted, hashes_.form().functions));
        for (std::size_t at = 0; at < rows_; at += block_rows()) {
            batch.check_cancel();
            const std::size_t end = std::min(rows_, at + block_rows());
            for (std::size_t q = first; q < last; ++q)
                compare(batch, signatures.data() + q * bytes, at, end, gates[q - first]);
        }
        for (std::size_t q = first; q < last; ++q) found[q] = rows_of_largest_count(gates[q - first].take(), wanted);
    });
    return found;
}

// Ranks the candidates of a query: of each rung the first ones, as many as it looks at.
void VectorSearcher::rank(std::span<const SearchBatch> rungs, std::size_t query, std::span<const CountedRow> candidates,
                          ThreadPool& pool, RungResults& results) const
{
    const float* vector = rungs[0].queries.data() + query * hashes_.dimensions();
    std::vector<double> values(candidates.size());
    pool.parallel_for(candidates.size(), rank_grain, [&](std::size_t begin, std::size_t end) {
        rungs[0].check_cancel();
        for (std::size_t i = begin; i < end; ++i) values[i] = value(vector, candidates[i].row);
    });
    for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
        FirstRows first(rungs[rung].k);
        const std::size_t compared = std::min(candidates_of(rungs[rung]), candidates.size());
        for (std::size_t i = 0; i < compared; ++i) first.offer({values[i], candidates[i].row});
        results[rung][query] = first.take_sorted();
    }
}

// Returns the rows of largest match count, with estimates of their similarities (protocol/similarity.h).
void VectorSearcher::estimate(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                              ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (rows_ == 0 || batch.k == 0 || batch.count == 0) return;
    const auto functions = static_cast<double>(hashes_.form().functions);
    const auto candidates = find_candidates(batch, std::min<std::size_t>(batch.k, rows_), pool);
    for (std::size_t q = 0; q < batch.count; ++q) {
        for (const CountedRow& row : candidates[q])
            if (row.count > 0) results[q].push_back({-static_cast<double>(row.count) / functions, row.row});
    }
}

void VectorSearcher::search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                                  ThreadPool& pool) const
{
    results.assign(rungs.size(), std::vector<std::vector<RowResult>>(batch.count));
    if (rows_ == 0 || batch.count == 0) return;
    const std::vector<SearchBatch> batches = batches_of(batch, rungs);
    std::size_t least = rows_;
    std::size_t most = 0;
    for (const SearchBatch& rung : batches) {
        least = std::min(least, candidates_of(rung));
        most = std::max(most, candidates_of(rung));
    }
    const auto candidates =
        least == rows_ ? std::vector(batch.count, all_rows(batch)) : find_candidates(batch, most, pool);
    const auto rank_one = [&](std::size_t q, ThreadPool& threads) {
        rank(batches, q, candidates[q], threads, results);
    };
    if (batch.count < pool.threads()) {
        for (std::size_t q = 0; q < batch.count; ++q) rank_one(q, pool);
        return;
    }
    for_queries(batch, pool, [&](std::size_t q) { rank_one(q, caller_alone()); });
}

}  // namespace

// An index too small to be calibrated is searched whole.
std::size_t candidates_of(const SearchBatch& batch, std::size_t rows)
{
    std::int64_t candidates = batch.settings.get(parameter_candidates, 0);
    if (candidates <= 0) candidates = batch.effort;
    if (candidates <= 0) return rows;
    return std::min<std::size_t>(rows, std::max<std::size_t>(static_cast<std::size_t>(candidates), batch.k));
}

std::unique_ptr<Searcher> make_vector_searcher(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays)
{
    return std::make_unique<VectorSearcher>(shape, options, arrays);
}

}  // namespace pgwarp::matchcount
