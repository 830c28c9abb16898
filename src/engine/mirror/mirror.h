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

#include "engine/mirror/delta.h"
#include "engine/mirror/delta_part.h"
#include "methods/method.h"
#include "protocol/messages.h"

namespace pgwarp
{

using Clock = std::chrono::steady_clock;

// What is dead: a bitmap over rows (bit i = row i) and sorted positions per delta log.
struct Tombstones {
    std::vector<std::uint64_t> rows;
    std::uint64_t rows_version = 0;  // new_bitmap_version(), where any row is dead
    std::array<std::vector<std::uint64_t>, delta_log_count> log_entries;
    std::uint64_t dead_rows = 0;
    std::uint64_t bytes() const;
};

struct PartView {
    DeltaPartPtr part;
    std::shared_ptr<const std::vector<std::uint64_t>> dead;  // null: none of its rows is
    std::uint64_t dead_version = 0;                          // of `dead`: new_bitmap_version()
};

struct MirrorSnapshot {
    LogViews logs;
    std::vector<PartView> parts;  // largest first, each with later entries than those before it
    std::shared_ptr<const Tombstones> dead;
    std::uint64_t tombstone_version = 0;

    std::uint64_t delta_rows() const;
    // Of those, the rows that no part holds, and the log's first.
    std::uint64_t plain_rows() const;
    std::uint64_t first_plain(std::uint32_t log) const
    {
        return parts.empty() ? logs[log].start : std::max(logs[log].start, parts.back().part->spans[log].end);
    }
};

// So few delta rows are not worth a merge by themselves.
inline constexpr std::uint64_t few_delta_rows = 1000;
// Of more than so many no part is made before their mirror is published.
inline constexpr std::uint64_t most_rows_ahead = 16 * few_delta_rows;

// What a dispatch took during which delta rows were compared while a device worked, in nanoseconds.
struct OverlappedTimes {
    std::size_t queries;
    std::uint64_t all;
    std::uint64_t parts;  // of the delta rows
    std::uint64_t plain;  // those compared one by one
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
    // Values that comparing a row takes, about: dimensions, or words of a list.
    double row_values() const { return row_values_; }

    // Loading: pieces of an array, each byte once, from any thread; an array begins when those before it are there.
    // Anything else is a BadRequest.
    void write(std::uint32_t array, std::uint64_t offset, std::span<const std::byte> bytes);
    void check_complete() const;
    void finish_load(ThreadPool& pool);  // once; by the loader

    // Additions, at any time.
    void add_delta(std::uint32_t log, std::uint64_t first, std::span<const Tid> tids, const RowView& rows);
    void add_tombstones(std::uint64_t version, const Tombstones& more);

    // Counts what delta rows cost beside the rest of a dispatch: those in parts, and those compared one by one.
    void count_delta(std::uint64_t rows_nanoseconds, std::uint64_t parts_nanoseconds, std::uint64_t plain_nanoseconds);
    // The same where they were compared while a device worked, and the device perhaps for both: they cost what such a
    // dispatch takes longer than it did with few of them. That there are any costs something, which no merge spares.
    void count_with_few(std::size_t queries, std::uint64_t nanoseconds);
    void count_overlapped_delta(const OverlappedTimes& times);
    // What delta rows add to a search lately, as a share of its time without them; negative while that isn't known.
    // What a part will soon spare it doesn't count.
    double delta_cost() const;
    // True once when delta rows cost so much that a part of them would do better: then somebody is to call add_part().
    bool wants_part();
    // Whether so many rows are in no part that one is worth making before anybody searches, and not more than a merge
    // can wait for.
    bool wants_part_ahead() const
    {
        const std::uint64_t rows = snapshot()->plain_rows();
        return recipe_.possible() && rows > few_delta_rows && rows <= most_rows_ahead;
    }
    // Makes a part of the rows that no part holds, in the background; `make_room` is told its bytes, about, before.
    // Throws what that throws, std::bad_alloc, or what searchers throw: then nothing is changed, and it is not asked
    // for for a while.
    void add_part(ThreadPool& pool, const std::function<void(std::uint64_t)>& make_room);

    std::shared_ptr<const MirrorSnapshot> snapshot() const;
    std::uint64_t memory_bytes() const;
    std::uint64_t host_bytes() const { return memory_bytes() - device_bytes(); }
    std::uint64_t device_bytes() const;
    // Bytes of the arrays as stored: what loading will take at least.
    std::uint64_t stored_bytes() const;

    // Statistics and recency, touched by every search. A batch is one dispatch; an answer may take several of them.
    void count_batch(std::uint64_t queries, std::uint64_t nanoseconds);
    void count_answer(std::uint64_t queries, std::uint64_t queue_nanoseconds, std::uint64_t nanoseconds);
    // How long searches of such a cost take here, as those counted did; a first guess before any was.
    void count_cost(double cost, double nanoseconds);
    double expected_ns(double cost) const
    {
        return cost * counted_ns_.load(std::memory_order_relaxed) / counted_cost_.load(std::memory_order_relaxed);
    }
    // How many queries a wide dispatch may have so that it takes about as long as others may be made to wait. Learnt
    // from the batches counted.
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
    std::uint64_t bearable_ns() const;  // that comparing rows one by one may have taken
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
    double row_values_;
    bool finished_ = false;

    mutable std::mutex mutex_;                    // guards what follows; never held while a search runs
    std::vector<std::vector<Interval>> written_;  // or being written
    std::vector<std::uint64_t> copied_;           // bytes of each array
    std::size_t first_open_ = 0;                  // all arrays before this one are there
    std::shared_ptr<const MirrorSnapshot> snapshot_;
    std::mutex extend_mutex_;  // one addition at a time

    PartRecipe recipe_;
    std::mutex part_mutex_;  // one part at a time
    std::atomic<std::uint64_t> rows_ns_{0};
    std::atomic<std::uint64_t> parts_ns_{0};
    std::atomic<std::uint64_t> plain_ns_{0};
    std::atomic<std::uint64_t> hidden_ns_{0};                   // of comparing one by one, while a device worked
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
