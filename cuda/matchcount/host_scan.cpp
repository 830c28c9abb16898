#include "matchcount/host_scan.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>

#include "methods/ordered_scan.h"
#include "numeric/edit_scan.h"

namespace pgwarp::cuda
{

namespace
{

// Of a block, at most, but for its last text.
constexpr std::uint32_t block_texts = 2048;
constexpr std::uint64_t block_characters = 1U << 17;
constexpr std::uint64_t most_cost = 1U << 22;  // between two polls: characters times words of the query

// Neighbours in the order of lengths.
struct Block {
    std::uint32_t begin;  // places
    std::uint32_t end;
    std::uint32_t gap;  // the least difference of a length to the query's
};

class HostScan
{
public:
    HostScan(const pgwarp::matchcount::TextsByLength& texts, const HostQuery& query)
        : texts_(texts), query_(query), scan_(query.text), first_(query.k), limit_(query.within)
    {
    }

    // Nearest lengths first.
    std::vector<Block> blocks() const
    {
        std::vector<Block> blocks;
        for (std::uint32_t begin = 0, end = 0; begin < texts_.count(); begin = end) {
            std::uint64_t characters = 0;
            while (end < texts_.count() && end - begin < block_texts && characters < block_characters)
                characters += texts_.length(end++);
            const std::uint32_t shortest = texts_.length(begin);
            const std::uint32_t longest = texts_.length(end - 1);
            const std::uint32_t length = query_.text.length;
            const std::uint32_t gap = length < shortest ? shortest - length : length > longest ? length - longest : 0;
            blocks.push_back({begin, end, gap});
        }
        std::ranges::stable_sort(blocks, {}, &Block::gap);
        return blocks;
    }
    void compare(const Block& block)
    {
        thread_local std::vector<std::uint32_t> places;
        thread_local std::vector<std::uint32_t> distances;
        for (std::uint32_t begin = block.begin; begin < block.end;) {
            if (query_.cancel != nullptr) query_.cancel->check();
            const std::uint64_t cost = (query_.text.length / 64 + 1) * (std::uint64_t{texts_.length(begin)} + 1);
            const auto count =
                static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most_cost / cost, 1, block.end - begin));
            const std::uint32_t limit = limit_.load(std::memory_order_relaxed);
            if (block.gap > limit) return;
            places.resize(count);
            distances.resize(count);
            std::iota(places.begin(), places.end(), begin);
            scan_.distances(texts_.texts(), places, limit, distances);
            offer(places, distances, limit);
            begin += count;
        }
    }
    std::vector<RowResult> take_sorted() { return first_.take_sorted(); }

private:
    void offer(std::span<const std::uint32_t> places, std::span<const std::uint32_t> distances, std::uint32_t limit)
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (distances[i] > limit) continue;
            const RowResult found{static_cast<double>(distances[i]), texts_.row(places[i])};
            if (!bit_is_set(query_.dead, found.row) && comes_before(query_.after, found)) first_.offer(found);
        }
        if (first_.full()) limit_.store(static_cast<std::uint32_t>(first_.last_distance()), std::memory_order_relaxed);
    }

    const pgwarp::matchcount::TextsByLength& texts_;
    const HostQuery& query_;
    const EditScan scan_;
    std::mutex mutex_;
    FirstRows first_;
    std::atomic<std::uint32_t> limit_;  // the largest distance of interest
};

}  // namespace

std::vector<RowResult> scan_texts(const pgwarp::matchcount::TextsByLength& texts, const HostQuery& query,
                                  ThreadPool& pool)
{
    HostScan scan(texts, query);
    const std::vector<Block> blocks = scan.blocks();
    pool.parallel_for(blocks.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) scan.compare(blocks[i]);
    });
    return scan.take_sorted();
}

void compare_texts(const RowView& query, const RowView& rows, std::span<double> out)
{
    const TextView text = view_text(query.list(0));
    std::vector<std::uint64_t> memory(EditPattern::memory_words(text));
    const EditPattern pattern(text, EditKind::levenshtein, memory.data());
    for (std::size_t i = 0; i < rows.count; ++i) out[i] = pattern.distance(view_text(rows.list(i)));
}

}  // namespace pgwarp::cuda
