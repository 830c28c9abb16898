// Counters on the CPU.
#include <algorithm>
#include <chrono>
#include <mutex>

#include "counter.h"

namespace pgwarp::bench::genie
{

namespace
{

using namespace pgwarp::matchcount;

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class HostCounter : public Counter
{
public:
    explicit HostCounter(ThreadPool& pool) : pool_(pool) {}

    std::string device() const override { return "cpu"; }
    BuildTimes build(const PartSet& set, std::size_t rows) override
    {
        lists_.reset();
        const auto begin = std::chrono::steady_clock::now();
        lists_ = std::make_unique<KeywordLists>(set.first(rows), pool_);
        return {seconds_since(begin), 0};
    }
    SearchTimes search(std::span<const std::vector<Item>> queries, std::uint32_t k, std::size_t repeat,
                       std::vector<Answer>& answers) override
    {
        answers.assign(queries.size(), {});
        std::vector<double> times;
        for (std::size_t i = repeat > 1 ? 0 : 1; i <= repeat; ++i) {  // the first of several is a warm-up
            const auto begin = std::chrono::steady_clock::now();
            pool_.parallel_for(queries.size(), 1, [&](std::size_t first, std::size_t last) {
                for (std::size_t query = first; query < last; ++query) answers[query] = search_one(queries[query], k);
            });
            if (i > 0) times.push_back(seconds_since(begin));
        }
        std::sort(times.begin(), times.end());
        return {0, times[times.size() / 2], 0};
    }
    CountMemory memory() const override { return memory_; }

protected:
    virtual Answer search_one(const std::vector<Item>& items, std::uint32_t k) = 0;

    ThreadPool& pool_;
    std::unique_ptr<KeywordLists> lists_;
    std::mutex mutex_;  // of what follows
    CountMemory memory_;
};

// Workspaces are kept from query to query, one a thread.
class Product : public HostCounter
{
public:
    using HostCounter::HostCounter;
    std::string name() const override { return "matchcount"; }
    std::size_t most_queries() const override { return 1024; }

private:
    Answer search_one(const std::vector<Item>& items, std::uint32_t k) override
    {
        static thread_local CountWorkspace workspace(slice_bytes);
        MatchCounts found = search_counts(*lists_, items, k, {}, workspace);
        const std::lock_guard lock(mutex_);
        // Counters of 4 to 32 bits, a slice at a time; the table of the rows that passed the gate.
        unsigned bits = 4;
        while (bits < 32 && items.size() * lists_->most_repeats() >> bits != 0) bits *= 2;
        memory_.counters = std::min(static_cast<double>(slice_bytes), lists_->rows() * (bits / 8.0));
        memory_.tables = std::max(memory_.tables, found.passed_rows * static_cast<double>(sizeof(CountedRow)));
        return std::move(found.rows);
    }

    static constexpr std::size_t slice_bytes = 524288;
};

class CountArray : public HostCounter
{
public:
    using HostCounter::HostCounter;
    std::string name() const override { return "CPU-Idx"; }
    std::size_t most_queries() const override { return 16; }

private:
    Answer search_one(const std::vector<Item>& items, std::uint32_t k) override
    {
        std::vector<std::uint32_t> counts(lists_->rows());
        for (const Item& item : items)
            for (const std::uint32_t row : lists_->lists(item)) ++counts[row];
        std::vector<std::uint64_t> keys(counts.size());  // the smallest: the largest count, then the first row
        for (std::uint64_t row = 0; row < counts.size(); ++row) keys[row] = std::uint64_t{~counts[row]} << 32 | row;
        const auto last = keys.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(k, keys.size()));
        std::nth_element(keys.begin(), last, keys.end());
        std::sort(keys.begin(), last);
        Answer answer;
        for (auto key = keys.begin(); key != last; ++key)
            answer.push_back({static_cast<std::uint32_t>(*key), ~static_cast<std::uint32_t>(*key >> 32)});
        const std::lock_guard lock(mutex_);
        memory_.counters = 4.0 * lists_->rows();
        memory_.tables = 8.0 * lists_->rows();
        return answer;
    }
};

}  // namespace

std::vector<std::unique_ptr<Counter>> host_counters(ThreadPool& pool)
{
    std::vector<std::unique_ptr<Counter>> counters;
    counters.push_back(std::make_unique<Product>(pool));
    counters.push_back(std::make_unique<CountArray>(pool));
    return counters;
}

}  // namespace pgwarp::bench::genie
