// Searches of the index method: they find a mirror's sets or attributes by the metric of the index.
#include <optional>
#include <vector>

#include "methods/arrays.h"
#include "methods/matchcount/count_workspaces.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/part_search.h"
#include "methods/rows/stored_lists.h"
#include "protocol/part_rows.h"

namespace pgwarp::matchcount
{

namespace
{

class PartSearcher : public Searcher
{
public:
    PartSearcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
        : shape_(shape), stored_(std::in_place, shape, arrays)
    {
        // A part gets a keyword and a posting.
        const ArrayShape* words = find_array(arrays, array_list_words);
        if (words != nullptr) expected_bytes_ = words->rows * sizeof(std::uint32_t);
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_->write(array, offset, bytes)) throw BadRequest("unknown array of sets");
    }
    void finish_load(ThreadPool& pool) override
    {
        stored_->finish_load();
        RankedRows ranked = rank_parts(stored_->rows(), shape_.element, pool);
        stored_.reset();
        index_.emplace(make_part_index(shape_, std::move(ranked), pool));
    }
    std::uint64_t memory_bytes() const override
    {
        return index_ ? index_->memory_bytes() : stored_->memory_bytes() + expected_bytes_;
    }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool finds_all() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        const auto metric = static_cast<Metric>(shape_.metric);
        for (std::size_t i = 0; i < rows.count; ++i)
            out[i] = distance_of_parts(shape_.element, metric, query.list(0), rows.list(i));
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        for_queries(batch, pool, [&](std::size_t q) { results[q] = find(part_query(batch, q)); });
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool&) const override
    {
        PartQuery query = part_query(batch, 0);
        query.after = {after_distance, after_row};
        results = find(query);
    }
    double search_cost(const SearchBatch& batch) const override
    {
        return cost_of_counting(shape_.element, index_->lists.rows(), batch.lists.slice(0, batch.count));
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

private:
    std::vector<RowResult> find(const PartQuery& query) const
    {
        CountWorkspace workspace = workspaces_.take();
        std::vector<RowResult> found = search_parts(*index_, query, workspace);
        workspaces_.give_back(std::move(workspace));
        return found;
    }

    IndexShape shape_;
    std::uint64_t expected_bytes_ = 0;   // of keywords and postings to come
    std::optional<StoredLists> stored_;  // until they are loaded
    std::optional<PartIndex> index_;     // afterwards
    mutable CountWorkspaces workspaces_;
};

}  // namespace

std::unique_ptr<Searcher> make_part_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
{
    return std::make_unique<PartSearcher>(shape, arrays);
}

}  // namespace pgwarp::matchcount
