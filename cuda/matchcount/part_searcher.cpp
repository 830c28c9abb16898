// The searcher of sets and attributes on the device, by counts of common parts.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "device/error.h"
#include "device/searcher.h"
#include "device/wait.h"
#include "matchcount/part_mirror.h"
#include "matchcount/part_search.h"
#include "matchcount/part_session.h"
#include "methods/arrays.h"
#include "methods/device_wait.h"
#include "methods/matchcount/part_index.h"
#include "methods/ordered_scan.h"
#include "methods/rows/stored_lists.h"
#include "protocol/part_rows.h"
#include "protocol/search_bound.h"

namespace pgwarp::cuda
{

namespace
{

using matchcount::Item;
using pgwarp::matchcount::CountedRow;

constexpr std::size_t most_queries = 4096;                       // of a chunk
constexpr std::size_t most_results = std::size_t{4} << 20;       // of a chunk
constexpr std::size_t most_chunk_bytes = std::size_t{1} << 30;   // unless it has one query
constexpr std::uint64_t most_postings = std::uint64_t{1} << 36;  // of a chunk: some 40 ms of an H100
constexpr std::size_t most_written_in_place = 4096;              // results that kernels write to page-locked memory
constexpr double most_count = 1U << 31;                          // no count reaches it

// A query as it is counted.
struct CountedQuery {
    std::uint32_t number = 0;  // in the batch
    std::vector<Item> items;
    std::uint32_t bound = 0;  // of counts
    std::uint64_t postings = 0;

    // Bytes of the counters, by which chunks are alike.
    int width() const { return bound < 1U << 8 ? 1 : bound < 1U << 16 ? 2 : 4; }
};

// The least count of rows within this distance; 0: all rows are.
std::uint32_t least_count(double within)
{
    return within < 0 ? static_cast<std::uint32_t>(std::ceil(-within)) : 0;
}

class DevicePartSearcher : public DeviceSearcher
{
public:
    DevicePartSearcher(Context& context, const IndexShape& shape, std::span<const ArrayShape> arrays)
        : DeviceSearcher(context, 0, "matchcount workspace"),
          element_(shape.element),
          stored_(std::in_place, shape, arrays),
          stream_(context.lease(Priority::build))
    {
        // A part gets a keyword, and a posting of 16 bits.
        const ArrayShape* words = find_array(arrays, array_list_words);
        if (words != nullptr) expected_bytes_ = words->rows * sizeof(std::uint32_t);
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_->write(array, offset, bytes)) throw BadRequest("unknown array of sets");
    }
    void finish_load(ThreadPool& pool) override
    {
        const DevicePatience patience(build_patience);
        check(cudaSetDevice(context().device()), "choosing the device");
        stored_->finish_load();
        pgwarp::matchcount::RankedRows ranked = pgwarp::matchcount::rank_parts(stored_->rows(), element_, pool);
        stored_.reset();
        mirror_.emplace(std::move(ranked), context().pool(), stream_);
    }
    std::uint64_t memory_bytes() const override
    {
        if (mirror_) return mirror_->host_bytes() + mirror_->device_bytes();
        // A load without room has neither.
        return (stored_ ? stored_->memory_bytes() : 0) + expected_bytes_;
    }
    Residence residence() const override
    {
        return {context().device(), false, mirror_ ? mirror_->device_bytes() : expected_bytes_};
    }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool finds_all() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        for (std::size_t i = 0; i < rows.count; ++i)
            out[i] = pgwarp::matchcount::distance_of_parts(element_, Metric::overlap, query.list(0), rows.list(i));
    }

    // In float operations of the CPU: the device counts a few thousand postings in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override
    {
        const RowView queries = batch.lists.slice(0, batch.count);
        return std::min(1e7, 1e-3 * pgwarp::matchcount::cost_of_counting(element_, rows(), queries));
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

protected:
    std::size_t row_count() const override { return rows(); }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        return patience_for(10 * static_cast<double>(batch.count) *
                            static_cast<double>(mirror_->lists().postings() + rows()));
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override;
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                        ThreadPool& pool) const override;

private:
    std::uint32_t rows() const { return mirror_->lists().rows(); }
    // In the order of the width of their counters.
    std::vector<CountedQuery> count_queries(const SearchBatch& batch, ThreadPool& pool) const;
    CountedQuery counted_query(const SearchBatch& batch, std::uint32_t number) const;
    // A chunk of at most `most` of the queries.
    PartPlan plan_search(const SearchBatch& batch, std::span<const CountedQuery> queries, const PartSession& session,
                         std::size_t most, std::size_t room) const;
    // All rows of at least the least count, and at least 1, of the batch's only query.
    std::vector<CountedRow> find_all(const SearchBatch& one, const Tombstones* dead, ThreadPool& pool) const;

    ElementType element_;
    std::uint64_t expected_bytes_ = 0;   // of device memory
    std::optional<StoredLists> stored_;  // until they are loaded
    Context::Lease stream_;              // device arrays are made and freed in its order
    std::optional<PartMirror> mirror_;   // afterwards
};

CountedQuery DevicePartSearcher::counted_query(const SearchBatch& batch, std::uint32_t number) const
{
    CountedQuery query;
    query.number = number;
    query.items = pgwarp::matchcount::items_of(mirror_->dictionary(), element_, batch.lists.list(number));
    query.bound = count_bound(mirror_->lists(), query.items);
    query.postings = mirror_->postings(query.items);
    return query;
}

std::vector<CountedQuery> DevicePartSearcher::count_queries(const SearchBatch& batch, ThreadPool& pool) const
{
    std::vector<CountedQuery> queries(batch.count);
    pool.parallel_for(batch.count, 64, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) queries[i] = counted_query(batch, static_cast<std::uint32_t>(i));
    });
    std::stable_sort(queries.begin(), queries.end(),
                     [](const CountedQuery& a, const CountedQuery& b) { return a.width() < b.width(); });
    return queries;
}

// Kernels write few results in place, and those of bounded searches, most of which find few.
PartPlan DevicePartSearcher::plan_search(const SearchBatch& batch, std::span<const CountedQuery> queries,
                                         const PartSession& session, std::size_t most, std::size_t room) const
{
    const std::uint32_t k = std::min(batch.k, rows());
    most = std::min({most, most_queries, most_results / k + 1});
    for (;;) {
        PartPlan plan;
        plan.k = k;
        plan.least = least_count(within_of(batch.settings));
        std::uint64_t postings = 0;
        for (const CountedQuery& query : queries) {
            postings += query.postings;
            const bool full = plan.count >= most || postings > most_postings;
            if (plan.count > 0 && (full || query.width() != queries[0].width())) break;
            plan.add(query.items, query.bound, query.postings);
        }
        session.reserve_top(plan);
        plan.answers_on_device = plan.least == 0 && std::size_t{plan.count} * k > most_written_in_place;
        if (plan.count == 1 || plan.workspace <= std::min(most_chunk_bytes, room / 2)) return plan;
        most = (plan.count + 1) / 2;
    }
}

void DevicePartSearcher::search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                                        ThreadPool& pool) const
{
    if (within_of(batch.settings) <= -most_count) return;
    const matchcount::KeywordListsView lists = mirror_->lists().view();
    const PartSession session(context(), lists, dead != nullptr ? dead->half_words() : nullptr);
    const std::vector<CountedQuery> queries = count_queries(batch, pool);
    std::vector<std::uint32_t> numbers;
    for (const CountedQuery& query : queries) numbers.push_back(query.number);
    const auto plan_of = [&](std::size_t first, std::size_t count, std::size_t room) {
        return plan_search(batch, std::span(queries).subspan(first), session, count, room);
    };
    const auto enqueue = [&](const PartPlan& plan, const Chunk& chunk) { session.find_top(plan, chunk); };
    search_round(batch, Round(batch, std::move(numbers)), plan_of, enqueue, results, pool);
}

std::vector<CountedRow> DevicePartSearcher::find_all(const SearchBatch& one, const Tombstones* dead,
                                                     ThreadPool& pool) const
{
    const matchcount::KeywordListsView lists = mirror_->lists().view();
    const PartSession session(context(), lists, dead != nullptr ? dead->half_words() : nullptr);
    const CountedQuery query = counted_query(one, 0);
    PartPlan plan;
    plan.k = 1;
    plan.least = least_count(within_of(one.settings));
    plan.add(query.items, query.bound, query.postings);
    session.reserve_all(plan);
    const Workspaces::Lease workspace(workspaces());
    return session.find_all(plan, begin_chunk(plan, nullptr, *workspace, pool));
}

// Rows behind a row are found among all that match, and then among the others.
void DevicePartSearcher::continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead,
                                        Results& answer, ThreadPool& pool) const
{
    const DevicePatience patience(search_patience(one));
    if (after.distance == -HUGE_VAL) return search_queries(one, dead, answer, pool);
    const double within = within_of(one.settings);
    if (within <= -most_count) return;
    one.check_cancel();
    FirstRows first(one.k);
    std::vector<std::uint64_t> matched((rows() + 63) / 64);
    for (const CountedRow& row : find_all(one, dead, pool)) {
        set_bit(matched, row.row);
        const RowResult result{overlap_distance(row.count), row.row};
        if (comes_before(after, result)) first.offer(result);
    }
    for (std::uint32_t row = 0; row < rows() && least_count(within) == 0 && !first.full(); ++row) {
        const RowResult result{overlap_distance(0), row};
        if (!bit_is_set(matched, row) && !bit_is_set(one.dead, row) && comes_before(after, result)) first.offer(result);
    }
    answer[0] = first.take_sorted();
}

}  // namespace

std::unique_ptr<Searcher> make_part_searcher(Context& context, const IndexShape& shape,
                                             std::span<const ArrayShape> arrays)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<DevicePartSearcher>(context, shape, arrays);
}

}  // namespace pgwarp::cuda
