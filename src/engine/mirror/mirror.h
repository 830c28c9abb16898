// A resident index: a method's searcher, the rows' heap addresses, delta rows, tombstones and their versions. A search
// takes an immutable snapshot and holds no lock while it runs; additions make a new snapshot.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/filter/filter_index.h"
#include "engine/filter/tid_order.h"
#include "engine/mirror/delta.h"
#include "engine/mirror/delta_part.h"
#include "methods/method.h"
#include "protocol/messages.h"

namespace pgwarp
{

using Clock = std::chrono::steady_clock;
inline std::uint64_t nanoseconds(Clock::duration duration)
{
    return static_cast<std::uint64_t>(std::max<std::int64_t>(std::chrono::nanoseconds(duration).count(), 0));
}

// Dead rows: a bitmap over rows (bit i = row i) and sorted positions per delta log.
struct Tombstones {
    std::vector<std::uint64_t> rows;
    std::uint64_t rows_version = 0;  // new_bitmap_version(), where any row is dead
    std::array<std::vector<std::uint64_t>, delta_log_count> log_entries;
    std::uint64_t dead_rows = 0;
    std::uint64_t bytes() const;
};

struct PartView {
    DeltaPartPtr part;
    std::shared_ptr<const std::vector<std::uint64_t>> dead;  // bit i = row i of the part; null: no row is dead
    std::uint64_t dead_version = 0;                          // of `dead`: new_bitmap_version()
};

struct MirrorSnapshot {
    LogViews logs;
    std::vector<PartView> parts;  // largest first, each with later entries than those before it
    std::shared_ptr<const Tombstones> dead;
    std::uint64_t tombstone_version = 0;

    // What the mirror lacks for a search with these minimums; answered: nothing.
    SearchStatus status_for(std::span<const std::uint64_t> delta_end, std::uint64_t least_tombstone_version) const;
    std::uint64_t delta_rows() const;
    // Delta rows that no part holds, and the first of them in a log.
    std::uint64_t plain_rows() const;
    std::uint64_t first_plain(std::uint32_t log) const
    {
        return parts.empty() ? logs[log].start : std::max(logs[log].start, parts.back().part->spans[log].end);
    }
};

// Up to this number, delta rows alone are not worth a merge.
inline constexpr std::uint64_t few_delta_rows = 1000;
// Of more rows no part is made before their mirror is published.
inline constexpr std::uint64_t most_rows_ahead = 16 * few_delta_rows;

// Times of a dispatch whose delta rows were compared while a device worked, in nanoseconds.
struct OverlappedTimes {
    std::size_t queries;
    std::uint64_t all;
    std::uint64_t parts;  // of delta rows in parts
    std::uint64_t plain;  // of delta rows compared one by one
};

class Mirror
{
public:
    // Checks the shapes against each other; throws BadRequest.
    Mirror(const MirrorKey& key, const IndexShape& shape, const ParameterList& options, std::uint64_t rows,
           std::vector<ArrayShape> arrays, const MethodFactory& method, bool on_cuda);

    const MirrorKey& key() const { return key_; }
    const IndexShape& shape() const { return shape_; }
    Metric metric() const { return static_cast<Metric>(shape_.metric); }
    std::uint64_t rows() const { return rows_; }
    bool on_cuda() const { return on_cuda_; }
    const Searcher& searcher() const { return *searcher_; }
    Tid tid(std::uint32_t row) const { return Tid{blocks_[row], offsets_[row], 0}; }
    // [rows][shape().attribute_count]
    std::span<const std::uint64_t> attributes() const { return attributes_; }
    // What is made of them for predicates.
    FilterIndex& filter() { return *filter_; }
    // The rows by their heap addresses.
    TidOrder& tid_order() { return *tid_order_; }
    // Estimated values that comparing a row reads: dimensions, or words of a list.
    double row_values() const { return row_values_; }

    // Loading: pieces of an array, each byte once, from any thread; an array may begin when those before it are
    // complete. Else throws BadRequest.
    void write(std::uint32_t array, std::uint64_t offset, std::span<const std::byte> bytes);
    void check_complete() const;
    void finish_load(ThreadPool& pool);  // once; by the loader

    // Additions, at any time.
    void add_delta(std::uint32_t log, std::uint64_t first, std::span<const Tid> tids, const RowView& rows);
    void add_tombstones(std::uint64_t version, const Tombstones& more);

    // Counts the times of a dispatch: of the index, of delta rows in parts, and of those compared one by one.
    void count_delta(std::uint64_t rows_nanoseconds, std::uint64_t parts_nanoseconds, std::uint64_t plain_nanoseconds);
    // The same where delta rows were compared while a device worked. Their cost is the time by which a dispatch exceeds
    // those with few delta rows, which count_with_few() averages: no merge saves the cost of having any.
    void count_with_few(std::size_t queries, std::uint64_t nanoseconds);
    void count_overlapped_delta(const OverlappedTimes& times);
    // The recent cost of delta rows, as a share of the search time without them; negative while unknown. Time that the
    // next part will save does not count.
    double delta_cost() const;
    // True, once, when delta rows cost so much that a part pays; then add_part() is to be called.
    bool wants_part();
    // Whether a part pays before the first search: enough rows are in no part, and few enough for a merge to wait for.
    bool wants_part_ahead() const
    {
        const std::uint64_t rows = snapshot()->plain_rows();
        return recipe_.possible() && rows > few_delta_rows && rows <= most_rows_ahead;
    }
    // Makes a part of the rows that no part holds, while searches go on; calls make_room(estimated bytes) first. Throws
    // exceptions of make_room, std::bad_alloc, or those of searchers: then nothing is changed, and wants_part() is
    // false for a while.
    void add_part(ThreadPool& pool, const std::function<void(std::uint64_t)>& make_room);

    std::shared_ptr<const MirrorSnapshot> snapshot() const;
    std::uint64_t memory_bytes() const;
    std::uint64_t host_bytes() const { return memory_bytes() - device_bytes(); }
    std::uint64_t device_bytes() const;
    // Bytes of the arrays as stored, a lower bound of the loaded size.
    std::uint64_t stored_bytes() const;

    // Statistics and recency, which every search updates. A batch is one dispatch; an answer may take several of them.
    void count_batch(std::uint64_t queries, std::uint64_t nanoseconds);
    void count_answer(std::uint64_t queries, std::uint64_t queue_nanoseconds, std::uint64_t nanoseconds);
    // The expected time of a search of this cost, by the counted ones; a guess before the first.
    void count_cost(double cost, double nanoseconds);
    double expected_ns(double cost) const
    {
        return cost * counted_ns_.load(std::memory_order_relaxed) / counted_cost_.load(std::memory_order_relaxed);
    }
    // The number of queries with which a wide dispatch takes about 20 ms, since others wait for it. Learnt from
    // batches.
    std::size_t wide_batch() const { return wide_batch_.load(std::memory_order_relaxed); }
    void touch() { last_used_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed); }
    Clock::time_point last_used() const
    {
        return Clock::time_point(Clock::duration(last_used_.load(std::memory_order_relaxed)));
    }
    MirrorStatus status() const;

private:
    struct Interval {
        std::uint64_t begin;
        std::uint64_t end;
    };
    void wait_with_parts(Clock::duration duration);
    std::uint64_t bearable_ns() const;  // plain_ns_ at which a part begins to pay
    void claim(std::uint32_t array, std::uint64_t offset, std::uint64_t length);

    const MirrorKey key_;
    const IndexShape shape_;
    const std::uint64_t rows_;
    const std::vector<ArrayShape> arrays_;
    const bool on_cuda_;
    std::unique_ptr<Searcher> searcher_;
    std::vector<std::uint32_t> blocks_;
    std::vector<std::uint16_t> offsets_;
    std::vector<std::uint64_t> attributes_;
    std::unique_ptr<FilterIndex> filter_;
    std::unique_ptr<TidOrder> tid_order_;
    double row_values_;
    bool finished_ = false;

    mutable std::mutex mutex_;                    // guards the next four; never held while a search runs
    std::vector<std::vector<Interval>> written_;  // or being written
    std::vector<std::uint64_t> copied_;           // bytes of each array
    std::size_t first_open_ = 0;                  // all arrays before this one are complete
    std::shared_ptr<const MirrorSnapshot> snapshot_;
    std::mutex extend_mutex_;  // one addition at a time

    PartRecipe recipe_;
    std::mutex part_mutex_;  // one part at a time
    std::atomic<std::uint64_t> rows_ns_{0};
    std::atomic<std::uint64_t> parts_ns_{0};
    std::atomic<std::uint64_t> plain_ns_{0};
    std::atomic<std::uint64_t> hidden_ns_{0};                   // of comparing one by one, behind the work of a device
    std::array<std::atomic<std::uint64_t>, 16> with_few_ns_{};  // of a dispatch, by class_of() its queries
    std::atomic<bool> part_asked_{false};
    std::atomic<bool> part_failed_{false};  // the last one
    std::atomic<Clock::rep> no_part_before_{0};

    std::atomic<Clock::rep> last_used_;
    std::atomic<std::uint64_t> searches_{0};
    std::atomic<std::uint64_t> batches_{0};
    std::atomic<std::uint64_t> widest_batch_{0};
    std::atomic<std::uint64_t> engine_ns_{0};
    std::atomic<std::uint64_t> queue_ns_{0};
    std::atomic<std::uint64_t> answer_ns_{0};
    std::atomic<std::size_t> wide_batch_;
    std::atomic<double> counted_ns_;
    std::atomic<double> counted_cost_;
};

}  // namespace pgwarp
