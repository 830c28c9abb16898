// Counters on a GPU.
#include <algorithm>
#include <chrono>

#include "../gpu/count_priority_queue.h"
#include "../gpu/device_arrays.h"
#include "../gpu/event_timer.h"
#include "counter.h"
#include "device/context.h"
#include "matchcount/dense_count.h"
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

struct Device {
    Device() : context(0, 0), lease(context.lease(Priority::build)), stream(lease), timer(stream) {}

    // Seconds, by the device's clock. The first run does not count.
    template <class Work>
    double time(std::size_t repeat, const Work& work)
    {
        work();
        std::vector<double> times;
        for (std::size_t i = 0; i < repeat; ++i) times.push_back(timer.time(work) / 1e3);
        return median(times);
    }
    template <class T>
    DeviceArray<T> array(std::size_t size)
    {
        return {context.pool(), size, "bench", stream};
    }

    Context context;
    Context::Lease lease;
    cudaStream_t stream;
    EventTimer timer;
};

// Rows of largest count of a batch, in device memory.
class Results
{
public:
    Results(Device& device, std::size_t queries, std::uint32_t k)
        : device_(device),
          k_(k),
          rows_(device.array<std::uint32_t>(queries * k)),
          counts_(device.array<std::uint32_t>(queries * k)),
          found_(device.array<std::uint32_t>(queries))
    {
    }
    CountedRows out() { return {rows_.data(), counts_.data(), found_.data()}; }
    // Returns the seconds of reading them.
    double read(std::vector<Answer>& answers) const
    {
        const auto begin = std::chrono::steady_clock::now();
        const std::vector<std::uint32_t> rows = received(rows_, device_.stream);
        const std::vector<std::uint32_t> counts = received(counts_, device_.stream);
        const std::vector<std::uint32_t> found = received(found_, device_.stream);
        const double seconds = seconds_since(begin);
        for (std::size_t query = 0; query < found.size(); ++query)
            for (std::size_t i = query * k_; i < query * k_ + found[query]; ++i)
                answers[query].push_back({rows[i], counts[i]});
        return seconds;
    }

private:
    Device& device_;
    std::uint32_t k_;
    DeviceArray<std::uint32_t> rows_;
    DeviceArray<std::uint32_t> counts_;
    DeviceArray<std::uint32_t> found_;
};

// The lists that several counters share.
struct Lists {
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

class ListCounter : public Counter
{
public:
    ListCounter(std::shared_ptr<Device> device, std::shared_ptr<Lists> shared)
        : device_(std::move(device)), shared_(std::move(shared))
    {
    }

    std::string device() const override { return "cuda"; }
    BuildTimes build(const PartSet& set, std::size_t count) override
    {
        const pgwarp::matchcount::KeywordRows rows = set.first(count);
        if (shared_->rows == rows.keywords.data() && shared_->row_count == count) return shared_->built;
        shared_->lists = {};
        auto begin = std::chrono::steady_clock::now();
        const auto offsets = sent(rows.offsets, device_->context, device_->stream);
        const auto keywords = sent(rows.keywords, device_->context, device_->stream);
        check(cudaStreamSynchronize(device_->stream), "sending rows");
        shared_->built.transfer_s = seconds_since(begin);
        begin = std::chrono::steady_clock::now();
        const DeviceKeywordRows device_rows{static_cast<std::uint32_t>(count), offsets.data(), keywords.data()};
        shared_->lists = DeviceLists(device_rows, device_->context.pool(), device_->lease);
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
        check(cudaStreamSynchronize(device_->stream), "sending queries");
        times.transfer_s = seconds_since(begin);
        answers.assign(queries.size(), {});
        search_sent(asked.queries, k, repeat, times, answers);
        return times;
    }
    CountMemory memory() const override { return memory_; }

protected:
    virtual void search_sent(const CountQueries& queries, std::uint32_t k, std::size_t repeat, SearchTimes& times,
                             std::vector<Answer>& answers) = 0;

    std::shared_ptr<Device> device_;
    std::shared_ptr<Lists> shared_;
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
        asked.items = sent(std::span<const Item>(items), device_->context, device_->stream);
        asked.offsets = sent(std::span<const std::uint32_t>(offsets), device_->context, device_->stream);
        asked.queries.count = static_cast<std::uint32_t>(queries.size());
        asked.queries.items = asked.items.data();
        asked.queries.item_offsets = asked.offsets.data();
        return asked;
    }
};

// Counters in shared memory, a range of rows a block.
class Product : public ListCounter
{
public:
    using ListCounter::ListCounter;
    std::string name() const override { return "matchcount"; }
    std::size_t most_queries() const override { return 10000; }

private:
    void search_sent(const CountQueries& queries, std::uint32_t k, std::size_t repeat, SearchTimes& times,
                     std::vector<Answer>& answers) override
    {
        Context& context = device_->context;
        const cudaStream_t stream = device_->stream;
        const KeywordListsView lists = shared_->lists.view();
        Results results(*device_, queries.count, k);
        auto workspace = device_->array<std::byte>(top_counts_workspace_bytes(lists, queries, k, context));
        // Counting alone: no row attains more than the bound.
        const std::vector<std::uint32_t> unattainable(queries.count, queries.bound + 1);
        const auto least = sent(std::span(unattainable), context, stream);
        CountQueries none = queries;
        none.least = least.data();
        times.match_s = device_->time(repeat, [&] { rows_of_counts(lists, none, k, results.out(), context, stream); });
        const double whole = device_->time(
            repeat, [&] { top_counts(lists, queries, k, results.out(), workspace.data(), context, stream); });
        times.match_s = std::min(times.match_s, whole);
        times.select_s = whole - times.match_s + results.read(answers);
        memory_ = {static_cast<double>(range_rows), 0};
    }
};

// The paper's c-PQ in global memory.
class PriorityQueues : public ListCounter
{
public:
    PriorityQueues(std::shared_ptr<Device> device, std::shared_ptr<Lists> lists, CountPriorityQueues::Blocks blocks)
        : ListCounter(std::move(device), std::move(lists)), blocks_(blocks)
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
        const cudaStream_t stream = device_->stream;
        CountPriorityQueues queues(queries.count, shared_->lists.rows(), k, queries.bound, device_->context.pool(),
                                   stream);
        auto counts = device_->array<std::uint32_t>(std::size_t{queries.count} * k);
        times.match_s = device_->time(repeat, [&] { queues.match(shared_->lists.view(), queries, blocks_); });
        times.select_s = device_->time(repeat, [&] { queues.select(counts.data()); });
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

// Signatures in the dense form: no lists.
class Dense : public Counter
{
public:
    explicit Dense(std::shared_ptr<Device> device) : device_(std::move(device)) {}

    std::string name() const override { return "matchcount, dense form"; }
    std::string device() const override { return "cuda"; }
    bool serves(const PartSet& set) const override { return set.buckets != 0; }
    std::size_t most_queries() const override { return 10000; }
    BuildTimes build(const PartSet& set, std::size_t rows) override
    {
        const auto functions = static_cast<std::uint32_t>(set.offsets[1]);
        std::vector<std::uint8_t> values(rows * functions);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<std::uint8_t>(set.keywords[i] % set.buckets);
        BuildTimes built;
        auto begin = std::chrono::steady_clock::now();
        const auto signatures = sent(values, device_->context, device_->stream);
        check(cudaStreamSynchronize(device_->stream), "sending rows");
        built.transfer_s = seconds_since(begin);
        begin = std::chrono::steady_clock::now();
        const auto count = static_cast<std::uint32_t>(rows);
        rows_ = {count, functions, set.buckets, dense_stride(count), nullptr};
        values_ = device_->array<std::uint8_t>(functions * rows_.stride);
        rows_.values = values_.data();
        transpose_signatures(signatures.data(), count, functions, values_.data(), rows_.stride, 0, device_->stream);
        check(cudaStreamSynchronize(device_->stream), "transposing signatures");
        built.build_s = seconds_since(begin);
        return built;
    }
    SearchTimes search(std::span<const std::vector<Item>> queries, std::uint32_t k, std::size_t repeat,
                       std::vector<Answer>& answers) override
    {
        std::vector<std::uint8_t> values;
        for (const std::vector<Item>& query : queries)
            for (const Item& item : query) values.push_back(static_cast<std::uint8_t>(item.first % rows_.universe));
        SearchTimes times;
        const auto begin = std::chrono::steady_clock::now();
        const auto asked = sent(values, device_->context, device_->stream);
        check(cudaStreamSynchronize(device_->stream), "sending queries");
        times.transfer_s = seconds_since(begin);
        const auto count = static_cast<std::uint32_t>(queries.size());
        Results results(*device_, count, k);
        auto workspace = device_->array<std::byte>(top_dense_counts_workspace_bytes(rows_, count, k, device_->context));
        times.match_s = device_->time(repeat, [&] {
            top_dense_counts(rows_, {count, asked.data(), nullptr}, k, results.out(), workspace.data(),
                             device_->context, device_->stream);
        });
        answers.assign(queries.size(), {});
        times.select_s = results.read(answers);
        return times;
    }
    // Counters lie in registers.
    CountMemory memory() const override { return {}; }

private:
    std::shared_ptr<Device> device_;
    DenseRows rows_{};
    DeviceArray<std::uint8_t> values_;
};

}  // namespace

std::vector<std::unique_ptr<Counter>> device_counters()
{
    const auto device = std::make_shared<Device>();
    const auto lists = std::make_shared<Lists>();
    std::vector<std::unique_ptr<Counter>> counters;
    counters.push_back(std::make_unique<Product>(device, lists));
    counters.push_back(std::make_unique<PriorityQueues>(device, lists, CountPriorityQueues::Blocks::ranges));
    counters.push_back(std::make_unique<PriorityQueues>(device, lists, CountPriorityQueues::Blocks::lists));
    counters.push_back(std::make_unique<Dense>(device));
    return counters;
}

}  // namespace pgwarp::bench::genie
