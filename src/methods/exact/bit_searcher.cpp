// Exact search over rows of bits. Scores are exact distances, so it needs no proposals and no proof.
#include <algorithm>
#include <mutex>

#include "methods/arrays.h"
#include "methods/bulk_memory.h"
#include "methods/certain_rows.h"
#include "methods/exact/exact.h"
#include "methods/ordered_scan.h"
#include "numeric/bits.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t bit_piece_rows = 8192;
constexpr std::size_t block_bytes = std::size_t{1} << 16;  // of rows, which stay in the cache for the next query
constexpr std::size_t most_block_rows = 512;
constexpr std::size_t together = 16;  // queries that a block is compared with

class BitSearcher : public Searcher
{
public:
    BitSearcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
        : metric_(static_cast<Metric>(shape.metric)), words_(shape.dimensions)
    {
        const ArrayShape* vectors = find_array(arrays, array_vectors);
        if (vectors == nullptr) return;
        rows_ = vectors->rows;
        require_array(arrays, array_vectors, ArrayType::u32, rows_, words_);
        bits_.resize(rows_ * words_);
    }

    void write(const std::string&, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        write_piece(std::span<float>(bits_), offset, bytes);
    }
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return bits_.size() * sizeof(float); }
    ResultKind result_kind() const override { return ResultKind::exact; }
    double search_cost(const SearchBatch& batch) const override
    {
        return 2.0 * static_cast<double>(batch.count) * static_cast<double>(rows_) * static_cast<double>(words_);
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        const float* query = batch.queries.data();
        results = scan_in_order(
            rows_, batch, after_distance, after_row, row_itself,
            [&](std::size_t i) { return canonical_distance(metric_, query, row(i), words_); }, pool);
    }
    bool finds_all() const override { return true; }
    bool takes_filters() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_certain_rows() const override { return true; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        for_queries(batch, pool, [&](std::size_t q) {
            const float* query = batch.queries.data() + q * words_;
            const auto value = [&](std::uint32_t i) { return canonical_distance(metric_, query, row(i), words_); };
            results[q] = value_certain_rows(batch, rows[q], after, value, pool);
        });
    }

private:
    const float* row(std::size_t i) const { return bits_.data() + i * words_; }
    std::size_t block_rows() const
    {
        return std::clamp<std::size_t>(block_bytes / (words_ * sizeof(float)), 1, most_block_rows);
    }
    void compare(const SearchBatch& batch, std::size_t query, std::size_t begin, std::size_t end,
                 FirstRows& first) const;
    void search_one(const SearchBatch& batch, std::size_t query, std::vector<RowResult>& result,
                    ThreadPool& pool) const;

    Metric metric_;
    std::size_t words_;
    std::size_t rows_ = 0;
    BulkVector<float> bits_;  // [rows][words]
};

// Offers the rows of a block that the query doesn't leave out.
void BitSearcher::compare(const SearchBatch& batch, std::size_t query, std::size_t begin, std::size_t end,
                          FirstRows& first) const
{
    double distances[most_block_rows];
    bit_distances(metric_, batch.queries.data() + query * words_, row(begin), end - begin, words_, distances);
    for (std::size_t i = begin; i < end; ++i) {
        const RowResult found{distances[i - begin], static_cast<std::uint32_t>(i)};
        if (first.takes(found) && !batch.leaves_out(query, i)) first.offer(found);
    }
}

void BitSearcher::search_one(const SearchBatch& batch, std::size_t query, std::vector<RowResult>& result,
                             ThreadPool& pool) const
{
    FirstRows all(batch.k);
    std::mutex mutex;
    pool.parallel_for(rows_, bit_piece_rows, [&](std::size_t begin, std::size_t end) {
        FirstRows some(batch.k);
        for (std::size_t at = begin; at < end; at += block_rows()) {
            batch.check_cancel();
            compare(batch, query, at, std::min(end, at + block_rows()), some);
        }
        const std::lock_guard lock(mutex);
        all.merge(some);
    });
    result = all.take_sorted();
}

void BitSearcher::search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const
{
    results.assign(batch.count, {});
    if (rows_ == 0 || batch.k == 0) return;
    // Few queries are spread over the threads, many get one thread each.
    if (batch.count < pool.threads()) {
        for (std::size_t q = 0; q < batch.count; ++q) search_one(batch, q, results[q], pool);
        return;
    }
    const std::size_t grain = std::clamp<std::size_t>(batch.count / pool.threads(), 1, together);
    pool.parallel_for(batch.count, grain, [&](std::size_t first, std::size_t last) {
        std::vector<FirstRows> best(last - first, FirstRows(batch.k));
        for (std::size_t at = 0; at < rows_; at += block_rows()) {
            batch.check_cancel();
            const std::size_t end = std::min(rows_, at + block_rows());
            for (std::size_t q = first; q < last; ++q) compare(batch, q, at, end, best[q - first]);
        }
        for (std::size_t q = first; q < last; ++q) results[q] = best[q - first].take_sorted();
    });
}

}  // namespace

std::unique_ptr<Searcher> make_bit_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
{
    return std::make_unique<BitSearcher>(shape, arrays);
}

}  // namespace pgwarp
