// Counters on a GPU.
#include <algorithm>
#include <chrono>

#include "../gpu/count_priority_queue.h"
#include "../gpu/device_arrays.h"
#include "../gpu/event_timer.h"
#include "counter.h"
#include "device/context.h"
#include "matchcount/match_count.h"

namespace pgwarp::bench::genie
{

namespace
{

using namespace pgwarp::cuda;
using namespace pgwarp::cuda::matchcount;
using DeviceLists = pgwarp::cuda::matchcount::KeywordLists;

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// The device, and the lists that counters of the same rows share.
struct Shared {
    Shared() : context(0, 0), lease(context.lease(Priority::build)), stream(lease), timer(stream) {}

    Context context;
    Context::Lease lease;
    cudaStream_t stream;
    EventTimer timer;
    DeviceLists lists;
    const std::uint32_t* rows = nullptr;  // keywords of the rows that the lists are of
    std::size_t row_count = 0;
    BuildTimes built;
};

struct DeviceQueries {
    DeviceArray<Item> items;
    DeviceArray<std::uint32_t> offsets;
    CountQueries queries;
};

class DeviceCounter : public Counter
{
public:
    explicit DeviceCounter(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

    std::string device() const override { return "cuda"; }
    BuildTimes build(const pgwarp::matchcount::KeywordRows& rows) override
    {
        const std::size_t count = rows.offsets.size() - 1;
        if (shared_->rows == rows.keywords.data() && shared_->row_count == count) return shared_->built;
        shared_->lists = {};
        auto begin = std::chrono::steady_clock::now();
        const auto offsets = sent(rows.offsets, shared_->context, shared_->stream);
        const auto keywords = sent(rows.keywords, shared_->context, shared_->stream);
        check(cudaStreamSynchronize(shared_->stream), "sending rows");
        shared_->built.transfer_s = seconds_since(begin);
        begin = std::chrono::steady_clock::now();
        const DeviceKeywordRows device_rows{static_cast<std::uint32_t>(count), offsets.data(), keywords.data()};
        shared_->lists = DeviceLists(device_rows, shared_->context.pool(), shared_->lease);
        shared_->built.build_s = seconds_since(begin);
        shared_->rows = rows.keywords.data();
        shared_->row_count = count;
        return shared_->built;
    }
    SearchTimes search(std::span<const std::vector<Item>> queries, std::uint32_t k, std::size_t repeat,
                       std::vector<Answer>& answers) override
    {
        SearchTimes times;
        const auto begin = std::chrono::steady_clock::now();
        const DeviceQueries asked = send_queries(queries);
        check(cudaStreamSynchronize(shared_->stream), "sending queries");
        times.transfer_s = seconds_since(begin);
        answers.assign(queries.size(), {});
        search_sent(asked.queries, k, repeat, times, answers);
        return times;
    }
    CountMemory memory() const override { return memory_; }

protected:
    virtual void search_sent(const CountQueries& queries, std::uint32_t k, std::size_t repeat, SearchTimes& times,
                             std::vector<Answer>& answers) = 0;

    // Seconds, by the device's clock. The first run does not count.
    template <class Work>
    double time(std::size_t repeat, const Work& work)
    {
        work();
        std::vector<double> times;
        for (std::size_t i = 0; i < repeat; ++i) times.push_back(shared_->timer.time(work) / 1e3);
        return median(times);
    }

    std::shared_ptr<Shared> shared_;
    CountMemory memory_;

private:
    DeviceQueries send_queries(std::span<const std::vector<Item>> queries)
    {
        std::vector<Item> items;
        std::vector<std::uint32_t> offsets{0};
        DeviceQueries asked;
        for (const std::vector<Item>& query : queries) {
            items.insert(items.end(), query.begin(), query.end());
            offsets.push_back(static_cast<std::uint32_t>(items.size()));
            asked.queries.bound = std::max(asked.queries.bound, count_bound(shared_->lists, query));
        }
        asked.items = sent(std::span<const Item>(items), shared_->context, shared_->stream);
        asked.offsets = sent(std::span<const std::uint32_t>(offsets), shared_->context, shared_->stream);
        asked.queries.count = static_cast<std::uint32_t>(queries.size());
        asked.queries.items = asked.items.data();
        asked.queries.item_offsets = asked.offsets.data();
        return asked;
    }
};

// Counters in shared memory, a range of rows a block.
class Product : public DeviceCounter
{
public:
    using DeviceCounter::DeviceCounter;
    std::string name() const override { return "matchcount"; }
    std::size_t most_queries() const override { return 1024; }

private:
    void search_sent(const CountQueries& queries, std::uint32_t k, std::size_t repeat, SearchTimes& times,
                     std::vector<Answer>& answers) override
    {
        Context& context = shared_->context;
        const cudaStream_t stream = shared_->stream;
        const KeywordListsView lists = shared_->lists.view();
        DeviceArray<std::uint32_t> rows(context.pool(), std::size_t{queries.count} * k, "bench", stream);
        DeviceArray<std::uint32_t> counts(context.pool(), std::size_t{queries.count} * k, "bench", stream);
        DeviceArray<std::uint32_t> found(context.pool(), queries.count, "bench", stream);
        const CountedRows out{rows.data(), counts.data(), found.data()};
        DeviceArray<std::byte> workspace(context.pool(), top_counts_workspace_bytes(lists, queries, k, context),
                                         "bench", stream);
        // Counting alone: no row attains more than the bound.
        const std::vector<std::uint32_t> unattainable(queries.count, queries.bound + 1);
        const auto least = sent(std::span(unattainable), context, stream);
        CountQueries none = queries;
        none.least = least.data();
        times.match_s = time(repeat, [&] { rows_of_counts(lists, none, k, out, context, stream); });
        const double whole =
            time(repeat, [&] { top_counts(lists, queries, k, out, workspace.data(), context, stream); });
        times.match_s = std::min(times.match_s, whole);
        const auto begin = std::chrono::steady_clock::now();
        const std::vector<std::uint32_t> host_rows = received(rows, stream);
        const std::vector<std::uint32_t> host_counts = received(counts, stream);
        const std::vector<std::uint32_t> host_found = received(found, stream);
        times.select_s = whole - times.match_s + seconds_since(begin);
        for (std::size_t query = 0; query < queries.count; ++query)
            for (std::size_t i = query * k; i < query * k + host_found[query]; ++i)
                answers[query].push_back({host_rows[i], host_counts[i]});
        memory_ = {static_cast<double>(range_rows), 0};
    }
};

// The paper's c-PQ in global memory.
class PriorityQueues : public DeviceCounter
{
public:
    PriorityQueues(std::shared_ptr<Shared> shared, CountPriorityQueues::Blocks blocks)
        : DeviceCounter(std::move(shared)), blocks_(blocks)
    {
    }
    std::string name() const override
    {
        return blocks_ == CountPriorityQueues::Blocks::ranges ? "c-PQ" : "c-PQ, a block a list";
    }
    std::size_t most_queries() const override
    {
        // At most a byte a row and query, in half of an 80 GB card.
        const std::size_t fitting = std::size_t{40000000000} / std::max<std::size_t>(1, shared_->row_count);
        return blocks_ == CountPriorityQueues::Blocks::lists ? std::min<std::size_t>(16, fitting)
                                                             : std::min<std::size_t>(1024, fitting);
    }

private:
    void search_sent(const CountQueries& queries, std::uint32_t k, std::size_t repeat, SearchTimes& times,
                     std::vector<Answer>& answers) override
    {
        const cudaStream_t stream = shared_->stream;
        CountPriorityQueues queues(queries.count, shared_->lists.rows(), k, queries.bound, shared_->context.pool(),
                                   stream);
        DeviceArray<std::uint32_t> counts(shared_->context.pool(), std::size_t{queries.count} * k, "bench", stream);
        times.match_s = time(repeat, [&] { queues.match(shared_->lists.view(), queries, blocks_); });
        times.select_s = time(repeat, [&] { queues.select(counts.data()); });
        const auto begin = std::chrono::steady_clock::now();
        const std::vector<std::uint32_t> host_counts = received(counts, stream);
        times.select_s += seconds_since(begin);
        for (std::size_t query = 0; query < queries.count; ++query)
            for (std::size_t i = query * k; i < (query + 1) * k; ++i)
                answers[query].push_back({no_row, host_counts[i]});
        memory_ = {static_cast<double>(queues.counter_bytes_a_query()),
                   static_cast<double>(queues.table_bytes_a_query())};
    }

    CountPriorityQueues::Blocks blocks_;
};

}  // namespace

std::vector<std::unique_ptr<Counter>> device_counters()
{
    const auto shared = std::make_shared<Shared>();
    std::vector<std::unique_ptr<Counter>> counters;
    counters.push_back(std::make_unique<Product>(shared));
    counters.push_back(std::make_unique<PriorityQueues>(shared, CountPriorityQueues::Blocks::ranges));
    counters.push_back(std::make_unique<PriorityQueues>(shared, CountPriorityQueues::Blocks::lists));
    return counters;
}

}  // namespace pgwarp::bench::genie
