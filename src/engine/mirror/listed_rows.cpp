#include "engine/mirror/listed_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/mirror/vectors.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t query_grain = 4;                                // queries that a thread takes at a time
constexpr std::size_t prefetched = 4;                                 // vectors requested ahead of their comparison
constexpr std::size_t parallel_compare_bytes = std::size_t{1} << 20;  // bytes; for fewer the caller works alone

class ListedRows : public Searcher
{
public:
    ListedRows(const IndexShape& shape, const char* effort, std::span<const DeltaEntry> rows,
               std::span<const std::uint32_t> lists, std::size_t list_count)
        : metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          effort_(effort),
          rows_(rows),
          first_(list_count + 1),
          by_list_(rows.size())
    {
        for (const std::uint32_t list : lists) ++first_[list + 1];
        for (std::size_t list = 0; list < list_count; ++list) first_[list + 1] += first_[list];
        std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
        for (std::size_t row = 0; row < lists.size(); ++row)
            by_list_[next[lists[row]]++] = static_cast<std::uint32_t>(row);
        for (const DeltaEntry& row : rows)
            max_norm_ = std::max(max_norm_, bound_norm(metric_, {row.vector, dimensions_}));
    }

    void write(const std::string&, std::uint64_t, std::span<const std::byte>) override
    {
        throw BadRequest("these rows are not loaded");
    }
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return (first_.size() + by_list_.size()) * sizeof(std::uint32_t); }
    ResultKind result_kind() const override { return ResultKind::exact; }
    double search_cost(const SearchBatch& batch) const override
    {
        const auto lists = static_cast<std::int64_t>(first_.size() - 1);
        std::int64_t probes = batch.settings.get(effort_, 0);
        if (probes <= 0) probes = batch.effort;
        if (probes <= 0) probes = lists;
        return 2.0 * static_cast<double>(batch.count * rows_.size() * dimensions_) *
               static_cast<double>(std::min(probes, lists)) / static_cast<double>(lists);
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        pool.parallel_for(batch.count, query_grain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                if (batch.cancel != nullptr) batch.cancel->check();
                results[i].clear();
                search_one(batch, i, pool, results[i]);
            }
        });
    }
    void search_exact(const SearchBatch&, double, std::uint32_t, std::vector<RowResult>&, ThreadPool&) const override
    {
        throw BadRequest("these rows are searched with their index");
    }

private:
    void search_one(const SearchBatch& batch, std::size_t number, ThreadPool& pool, std::vector<RowResult>& found) const
    {
        const float* query = batch.queries.data() + number * dimensions_;
        if (batch.probed != nullptr && !(*batch.probed)[number].empty()) {
            for (const Candidate& list : (*batch.probed)[number])
                add_live(batch, first_[list.row], first_[list.row + 1], found);
        } else {
            add_live(batch, 0, by_list_.size(), found);
        }
        const bool few = found.size() * dimensions_ * sizeof(float) < parallel_compare_bytes;
        compare(batch, query, few ? caller_alone() : pool, found);
        if (found.size() <= batch.k) return;
        const auto nearer = [](const RowResult& a, const RowResult& b) { return a.distance < b.distance; };
        const auto kth = found.begin() + static_cast<std::ptrdiff_t>(batch.k) - 1;
        std::nth_element(found.begin(), kth, found.end(), nearer);
        // A row among the true k nearest scores at most 2 errors above the k-th best score.
        const float norm = bound_norm(metric_, {query, dimensions_});
        const double limit = kth->distance + 2.0 * score_error_bound(metric_, dimensions_, norm, max_norm_);
        std::erase_if(found, [limit](const RowResult& row) { return row.distance > limit; });
    }

    // Adds the live rows at by_list_[begin, end).
    void add_live(const SearchBatch& batch, std::size_t begin, std::size_t end, std::vector<RowResult>& found) const
    {
        for (std::size_t at = begin; at < end; ++at) {
            if (!bit_is_set(batch.dead, by_list_[at])) found.push_back({0, by_list_[at]});
        }
    }

    // Sets the scores of these rows.
    void compare(const SearchBatch& batch, const float* query, ThreadPool& pool, std::vector<RowResult>& found) const
    {
        const std::size_t grain = items_at_a_time(dimensions_ * sizeof(float));
        pool.parallel_for(found.size(), grain, [&](std::size_t begin, std::size_t end) {
            if (batch.cancel != nullptr) batch.cancel->check();
            for (std::size_t i = begin; i < end; ++i) {
                if (i + prefetched < found.size())
                    prefetch_vector(rows_[found[i + prefetched].row].vector, dimensions_);
                const float value = score(metric_, query, rows_[found[i].row].vector, dimensions_);
                // An overflow proves nothing: the row stays a candidate.
                found[i].distance = std::isnan(value) ? -std::numeric_limits<double>::infinity() : value;
            }
        });
    }

    const Metric metric_;
    const std::size_t dimensions_;
    const char* const effort_;
    const std::span<const DeltaEntry> rows_;
    std::vector<std::uint32_t> first_;    // [lists + 1] places in by_list_
    std::vector<std::uint32_t> by_list_;  // rows, list after list
    float max_norm_ = 0;
};

}  // namespace

std::unique_ptr<Searcher> make_listed_rows(const IndexShape& shape, const char* effort,
                                           std::span<const DeltaEntry> rows, std::span<const std::uint32_t> lists,
                                           std::size_t list_count)
{
    return std::make_unique<ListedRows>(shape, effort, rows, lists, list_count);
}

}  // namespace pgwarp
