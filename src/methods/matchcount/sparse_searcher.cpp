// Searches of the index method: they find a mirror's sparse vectors by their distances.
#include <optional>
#include <vector>

#include "methods/arrays.h"
#include "methods/certain_rows.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/sparse_search.h"
#include "methods/rows/sparse_rows.h"
#include "methods/rows/stored_lists.h"
#include "protocol/search_bound.h"

namespace pgwarp::matchcount
{

namespace
{

SparseQuery query_of(const SearchBatch& batch, std::size_t number)
{
    SparseQuery query;
    query.vector = sparse_row(batch.lists, number);
    query.k = batch.k;
    query.dead = batch.dead;
    query.within = within_of(batch.settings);
    query.cancel = batch.cancel;
    return query;
}

class SparseSearcher : public Searcher
{
public:
    SparseSearcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
        : metric_(static_cast<Metric>(shape.metric)), stored_(shape, arrays)
    {
        // An element gets a posting and the number of its value.
        const ArrayShape* words = find_array(arrays, array_list_words);
        if (words != nullptr) expected_bytes_ = words->rows * (sizeof(std::uint32_t) + sizeof(std::int16_t));
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_.write(array, offset, bytes)) throw BadRequest("unknown array of sparse vectors");
    }
    void finish_load(ThreadPool& pool) override
    {
        stored_.finish_load();
        index_.emplace(metric_, stored_.rows(), pool);
    }
    std::uint64_t memory_bytes() const override
    {
        return stored_.memory_bytes() + (index_ ? index_->memory_bytes() : expected_bytes_);
    }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool finds_all() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        compare_sparse_rows(metric_, query, rows, out);
    }

    // Threads share the queries of a batch, or the rows of a query.
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        if (batch.count < pool.threads()) {
            for (std::size_t q = 0; q < batch.count; ++q) results[q] = search_sparse(*index_, query_of(batch, q), pool);
            return;
        }
        for_queries(batch, pool,
                    [&](std::size_t q) { results[q] = search_sparse(*index_, query_of(batch, q), caller_alone()); });
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        SparseQuery query = query_of(batch, 0);
        query.after = {after_distance, after_row};
        results = search_sparse(*index_, query, pool);
    }
    bool compares_certain_rows() const override { return true; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        if (batch.k == 0) return;
        const double within = within_of(batch.settings);
        for (std::size_t q = 0; q < batch.count; ++q) {
            const SparseView query = sparse_row(batch.lists, q);
            const auto value = [&](std::uint32_t row) { return sparse_distance(metric_, query, index_->row(row)); };
            results[q] = value_certain_rows(batch, rows[q], after, value, pool);
            // Rows without a distance are no results.
            std::erase_if(results[q], [within](const RowResult& found) { return !(found.distance <= within); });
        }
    }
    // Reads a list or a column for each term of the query.
    double search_cost(const SearchBatch& batch) const override
    {
        const auto terms = static_cast<double>(batch.lists.word_count());
        return static_cast<double>(index_->rows()) * (static_cast<double>(batch.count) + terms) / 8;
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

private:
    Metric metric_;
    std::uint64_t expected_bytes_ = 0;  // of lists to come
    StoredLists stored_;
    std::optional<SparseIndex> index_;  // after loading
};

}  // namespace

std::unique_ptr<Searcher> make_sparse_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
{
    return std::make_unique<SparseSearcher>(shape, arrays);
}

}  // namespace pgwarp::matchcount
