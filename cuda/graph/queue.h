// The bounded queue of a search (SONG section 4): the best rows seen so far, sorted, expanded or not, in memory that a
// group of threads shares. New rows come in batches. Entries that come before the queue's end are collected, and then
// merged with the queue into the other half of the memory, where threads find the places of entries by counting. Free
// of CUDA.
#pragma once

#include <cstdint>

#include "graph/entry.h"

namespace pgwarp::cuda::graph
{

// A Memory, shared by the group of a search, has
//   Entry* entries(side)       [length], for side 0 and 1: one holds the sorted queue, the next merge writes the other
//   Entry* kept()              [kept_room(most_batch)], aligned to 16 bytes: entries of the batch
//   std::uint32_t* counters()  [queue_counters]
//   std::uint32_t* rows()      [most_batch]: free while a batch is merged
// and, for the traversal: rows() for rows to score; parents(warp) [places()], rows to expand; again() [again], the best
// starts; first(), the entry of the first start; and, with several groups, task() and gathered(), entries of the other
// groups. Functions, so that kernels do not keep each address in a register.

inline constexpr std::uint32_t queue_counters = 9;
inline constexpr std::uint32_t kept_counter = 0;    // and the next: entries in `kept`; batches alternate
inline constexpr std::uint32_t lowest_counter = 2;  // and the next: least place of an entry; batches alternate
// Counters of the traversal:
inline constexpr std::uint32_t located_counter = 4;  // rows to be scored
inline constexpr std::uint32_t lost_counter = 5;     // 1: a row of the batch was not remembered and may come again
inline constexpr std::uint32_t turns_counter = 6;    // TraversalCounts, from here to the end
inline constexpr std::uint32_t expanded_counter = 7;
inline constexpr std::uint32_t scored_counter = 8;

inline constexpr std::uint32_t nowhere = 0xffffffff;  // after all places

// Entries of a batch are read in steps of kept_step, at most 2^most_sharer_bits threads together.
inline constexpr std::uint32_t most_sharer_bits = 3;
inline constexpr std::uint32_t kept_step = 8 << most_sharer_bits;
PGWARP_HOST_DEVICE constexpr std::uint32_t kept_room(std::uint32_t most_batch)
{
    return (most_batch + kept_step - 1) / kept_step * kept_step;
}

// The result of merging a batch.
struct Taken {
    std::uint32_t entries = 0;       // entries that came before the queue's end
    std::uint32_t lowest = nowhere;  // the least place of one of them
};

template <class Group, class Memory>
class Queue
{
public:
    PGWARP_HOST_DEVICE Queue(const Group& group, const Memory& memory, std::uint32_t length)
        : group_(group), memory_(memory), length_(length)
    {
    }

    PGWARP_HOST_DEVICE Entry* entries() const { return memory_.entries(side_); }
    // Only entries before end() enter the queue: no_entry while there is room.
    PGWARP_HOST_DEVICE Entry end() const { return end_; }
    PGWARP_HOST_DEVICE bool is_full() const { return end_ != no_entry; }

    // The caller adds a barrier.
    PGWARP_HOST_DEVICE void clear()
    {
        for (std::uint32_t i = group_.rank(); i < length_; i += group_.size()) entries()[i] = no_entry;
        if (group_.rank() != 0) return;
        reset_counters(0);
        reset_counters(1);
    }

    // Takes over the first `count` entries of another queue in the same memory. The caller adds a barrier.
    PGWARP_HOST_DEVICE void continue_with(const Queue& other, std::uint32_t count)
    {
        side_ = other.side_;
        turn_ = other.turn_;
        end_ = count < length_ ? no_entry : entries()[length_ - 1];
        for (std::uint32_t i = count + group_.rank(); i < length_; i += group_.size()) entries()[i] = no_entry;
    }

    // Offers an entry of a batch. Called by whole warps; threads without an entry pass no_entry.
    PGWARP_HOST_DEVICE void offer(Entry entry) const
    {
        const bool comes = lies_before(entry, end_);
        const std::uint32_t place = group_.count(&memory_.counters()[kept_counter + turn_], comes);
        if (comes) memory_.kept()[place] = entry;
    }

    // Whether large batches are trimmed before they are merged. Groups that share a multiprocessor have no registers
    // for it.
    PGWARP_HOST_DEVICE bool trims() const { return Group::exclusive && length_ < parts(); }

    // Merges the entries offered since the last call. Called by all threads after a barrier. One thread each calls
    // comes(row, place) for each row before the queue's end, with its place among the old entries; entered(row) for
    // each row that gets a place; and left(row) for each row that loses its place. repeats: a row may have been offered
    // twice, or be in the queue. Ends with a barrier: all threads see the new queue.
    template <class Comes, class Entered, class Left>
    PGWARP_HOST_DEVICE Taken take_in(bool repeats, const Comes& comes, const Entered& entered, const Left& left)
    {
        std::uint32_t* counters = memory_.counters();
        const std::uint32_t came = counters[kept_counter + turn_];
        std::uint32_t kept = came;
        turn_ ^= 1;
        if (group_.rank() == 0) reset_counters(turn_);
        if (kept == 0) {
            group_.sync();
            return {};
        }
        if (repeats) drop_repeats(kept);
        if constexpr (Group::exclusive) {
            if (pays_to_trim(kept)) kept = trim(kept, &counters[kept_counter + (turn_ ^ 1)]);
        }
        Entry* to = memory_.entries(side_ ^ 1);
        place_all(kept, to, comes, entered, left);
        side_ ^= 1;
        group_.sync();
        end_ = to[length_ - 1];
        return {came, counters[lowest_counter + (turn_ ^ 1)]};
    }

private:
    // The number of parts of a batch, one for each set of threads that share: at least twice the length, where there
    // are threads.
    PGWARP_HOST_DEVICE std::uint32_t parts() const { return group_.size() >> group_.sharer_bits(2 * length_); }

    // Trimming pays off for large batches, for which rows() has room for a key of each part.
    PGWARP_HOST_DEVICE bool pays_to_trim(std::uint32_t kept) const
    {
        return kept > 3 * length_ && kept > parts() && trims();
    }

    PGWARP_HOST_DEVICE static std::uint32_t key_of(Entry entry) { return static_cast<std::uint32_t>(entry >> 32); }

    // Drops most of the entries that are not among the `length` first. The batch must not have repeats. Returns the
    // number of entries left. Called by all threads. counter: the counter of `kept`.
    PGWARP_HOST_DEVICE std::uint32_t trim(std::uint32_t kept, std::uint32_t* counter)
    {
        const std::uint32_t bound = bound_of(kept, counter);
        // The entries left overwrite entries that all threads have read.
        for (std::uint32_t base = 0; base < kept; base += group_.size()) {
            const std::uint32_t i = base + group_.rank();
            const Entry entry = i < kept ? memory_.kept()[i] : no_entry;
            group_.sync();
            const bool stays = entry != no_entry && key_of(entry) <= bound;
            const std::uint32_t place = group_.count(counter, stays);
            if (stays) memory_.kept()[place] = entry;
        }
        group_.sync();
        return *counter;
    }

    // The `length`-th least of the least keys of the parts: at least `length` entries are not after it. Sets *counter
    // to 0.
    PGWARP_HOST_DEVICE std::uint32_t bound_of(std::uint32_t kept, std::uint32_t* counter)
    {
        const std::uint32_t sharer_bits = group_.sharer_bits(2 * length_);
        const std::uint32_t lane = group_.rank() & ((1U << sharer_bits) - 1);
        const std::uint32_t part = group_.rank() >> sharer_bits;
        std::uint32_t least = key_of(no_entry);
        for (std::uint32_t i = group_.rank(); i < kept; i += group_.size()) {
            const std::uint32_t key = key_of(memory_.kept()[i]);
            least = key < least ? key : least;
        }
        least = group_.least(sharer_bits, least);
        std::uint32_t* bound = memory_.rows();
        std::uint32_t* leasts = bound + 1;
        if (lane == 0) leasts[part] = least;
        group_.sync();
        if (group_.rank() == 0) *counter = 0;
        std::uint32_t before = 0;
        for (std::uint32_t i = lane; i < parts(); i += 1U << sharer_bits) {
            const std::uint32_t other = leasts[i];
            before += other < least || (other == least && i < part) ? 1 : 0;
        }
        if (group_.sum(sharer_bits, before) + 1 == length_ && lane == 0) *bound = least;
        group_.sync();
        return *bound;
    }

    PGWARP_HOST_DEVICE void reset_counters(std::uint32_t turn)
    {
        memory_.counters()[kept_counter + turn] = 0;
        memory_.counters()[lowest_counter + turn] = nowhere;
    }

    // Keeps one of equal entries, and none that is in the queue. Seldom needed, so it is not optimized.
    PGWARP_HOST_DEVICE void drop_repeats(std::uint32_t kept)
    {
        const Entry* known = entries();
        for (std::uint32_t i = group_.rank(); i < kept; i += group_.size()) {
            const Entry entry = memory_.kept()[i];
            const std::uint32_t place = lower_bound_of(known, 0, length_, entry);
            bool again = place < length_ && place_of(known[place]) == place_of(entry);
            for (std::uint32_t j = 0; j < i; ++j) again = again || memory_.kept()[j] == entry;
            memory_.rows()[i] = again ? 1 : 0;
        }
        group_.sync();
        for (std::uint32_t i = group_.rank(); i < kept; i += group_.size()) {
            if (memory_.rows()[i] != 0) memory_.kept()[i] = no_entry;
        }
        group_.sync();
    }

    // The number of entries of the batch before `entry`, counted over the calling thread's part: one of every
    // 2^sharer_bits pairs.
    PGWARP_HOST_DEVICE std::uint32_t kept_before(Entry entry, std::uint32_t kept, std::uint32_t sharer_bits) const
    {
        struct alignas(16) Pair {
            Entry first;
            Entry second;
        };
        constexpr std::uint32_t together = kept_step / (2 << most_sharer_bits);
        const std::uint32_t own = group_.rank() & ((1U << sharer_bits) - 1);
        const auto* pairs = reinterpret_cast<const Pair*>(memory_.kept());
        const std::uint32_t step = 2 * together << sharer_bits;
        std::uint32_t before = 0;
        std::uint32_t begin = 0;
        for (; begin + step <= kept; begin += step) {
            for (std::uint32_t i = 0; i < together; ++i) {
                const Pair pair = pairs[begin / 2 + (i << sharer_bits) + own];
                before += (pair.first < entry ? 1 : 0) + (pair.second < entry ? 1 : 0);
            }
        }
        if (begin >= kept) return before;
        for (std::uint32_t i = 0; i < together; ++i) {
            const std::uint32_t place = begin / 2 + (i << sharer_bits) + own;
            const Pair pair = pairs[place];
            before += pair.first < entry && 2 * place < kept ? 1 : 0;
            before += pair.second < entry && 2 * place + 1 < kept ? 1 : 0;
        }
        return before;
    }

    // Places the entries of the batch and then those of the queue. Several threads share an entry where there are
    // enough.
    template <class Comes, class Entered, class Left>
    PGWARP_HOST_DEVICE void place_all(std::uint32_t kept, Entry* to, const Comes& comes, const Entered& entered,
                                      const Left& left)
    {
        const std::uint32_t count = kept + length_;
        const std::uint32_t sharer_bits = group_.sharer_bits(count);
        const std::uint32_t together = group_.size() >> sharer_bits;
        // In a group with a multiprocessor to itself, warps without an entry leave the loop early.
        const std::uint32_t end =
            Group::exclusive ? count - smaller(count, group_.first_of_warp() >> sharer_bits) : count;
        // All threads of a warp must make the same number of steps.
        for (std::uint32_t base = 0; base < end; base += together) {
            const std::uint32_t own = base + (group_.rank() >> sharer_bits);
            const bool is_new = own < kept;
            Entry entry = no_entry;
            if (own < count) entry = is_new ? memory_.kept()[own] : entries()[own - kept];
            const std::uint32_t before = group_.sum(sharer_bits, kept_before(entry, kept, sharer_bits));
            if (own >= count || (group_.rank() & ((1U << sharer_bits) - 1)) != 0) continue;
            if (is_new) {
                place_new(entry, before, to, comes, entered);
            } else {
                move_entry(entry, own - kept + before, to, left);
            }
        }
    }

    template <class Comes, class Entered>
    PGWARP_HOST_DEVICE void place_new(Entry entry, std::uint32_t before, Entry* to, const Comes& comes,
                                      const Entered& entered)
    {
        if (entry == no_entry) return;
        const std::uint32_t known = lower_bound_of(entries(), 0, length_, entry);
        comes(row_of(entry), known);
        if (before == 0) memory_.counters()[lowest_counter + (turn_ ^ 1)] = known;
        if (known + before >= length_) return;
        to[known + before] = entry;
        entered(row_of(entry));
    }

    template <class Left>
    PGWARP_HOST_DEVICE void move_entry(Entry entry, std::uint32_t place, Entry* to, const Left& left)
    {
        if (place < length_) {
            to[place] = entry;
        } else if (entry != no_entry) {
            left(row_of(entry));
        }
    }

    const Group& group_;
    const Memory& memory_;
    std::uint32_t length_;
    std::uint32_t side_ = 0;
    std::uint32_t turn_ = 0;  // index of the current counters
    Entry end_ = no_entry;    // the last entry, or no_entry while there is room
};

}  // namespace pgwarp::cuda::graph
