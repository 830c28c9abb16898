// Searches of the index method: they find a mirror's sets or attributes by the metric of the index.
#include <algorithm>
#include <vector>

#include "methods/matchcount/matchcount.h"
#include "methods/ordered_scan.h"
#include "methods/rows/stored_lists.h"
#include "protocol/search_bound.h"

namespace pgwarp::matchcount
{

namespace
{

using Words = std::span<const std::uint32_t>;

class PartSearcher : public Searcher
{
public:
    PartSearcher(const IndexShape& shape, std::span<const ArrayShape> arrays) : shape_(shape), stored_(shape, arrays) {}

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_.write(array, offset, bytes)) throw BadRequest("unknown array of sets");
    }
    void finish_load(ThreadPool&) override { stored_.finish_load(); }
    std::uint64_t memory_bytes() const override { return stored_.memory_bytes(); }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        for (std::size_t i = 0; i < rows.count; ++i) out[i] = distance(query.list(0), rows.list(i));
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        for_queries(batch, pool, [&](std::size_t q) { results[q] = find(batch, q, {-no_bound, 0}, caller_alone()); });
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        results = find(batch, 0, {after_distance, after_row}, pool);
    }
    double search_cost(const SearchBatch& batch) const override
    {
        return static_cast<double>(batch.count) * static_cast<double>(stored_.rows().word_count());
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

private:
    double distance(Words query, Words row) const
    {
        if (shape_.element == ElementType::attribute_set) return overlap_distance(count_matches(query, row));
        const std::uint32_t common = count_common(query, row);
        if (static_cast<Metric>(shape_.metric) == Metric::overlap) return overlap_distance(common);
        return jaccard_distance_of_sets(common, query.size() / set_words, row.size() / set_words);
    }
    std::vector<RowResult> find(const SearchBatch& batch, std::size_t query, const RowResult& after,
                                ThreadPool& pool) const
    {
        const RowView rows = stored_.rows();
        const Words words = batch.lists.list(query);
        const auto result_at = [&](std::size_t row) -> RowResult {
            return {distance(words, rows.list(row)), static_cast<std::uint32_t>(row)};
        };
        std::vector<RowResult> found = scan_in_order(rows.count, batch, after.distance, after.row, result_at, pool);
        const double within = within_of(batch.settings);
        std::erase_if(found, [within](const RowResult& result) { return !(result.distance <= within); });
        return found;
    }

    IndexShape shape_;
    StoredLists stored_;
};

}  // namespace

std::unique_ptr<Searcher> make_part_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
{
    return std::make_unique<PartSearcher>(shape, arrays);
}

}  // namespace pgwarp::matchcount
