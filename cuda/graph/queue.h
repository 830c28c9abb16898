// The bounded queue of a search (SONG section 4): the best rows seen so far, sorted, those not yet expanded among
// them, in memory that a group of threads shares. New rows come in batches: what comes before the queue's end is put
// down, and then both are merged into the other half of the memory, where threads find the places of entries by
// counting. Free of CUDA.
#pragma once

#include <cstdint>

#include "graph/entry.h"

namespace pgwarp::cuda::graph
{

// A Memory, shared by the group of a search, has
//   Entry* entries(side)       [length], for side 0 and 1: the queue in one, sorted, the other to be written next
//   Entry* kept()              [kept_room(most_fresh)], on 16 bytes: scored rows on their way in
//   std::uint32_t* counters()  [queue_counters]
//   std::uint32_t* rows()      [most_fresh]: free while a batch is merged
// and, for the traversal, rows() for located ones, parents(warp) [places()], what is expanded, again() [again],
// starts, first(), the entry of the first of them, and, where several groups work at a search, task() and gathered(),
// what others have scored. Functions, so that a device keeps no address of each in a register.

inline constexpr std::uint32_t queue_counters = 9;
inline constexpr std::uint32_t kept_counter = 0;    // and the next, for every other batch: entries in `kept`
inline constexpr std::uint32_t lowest_counter = 2;  // and the next: the least place that an entry gets in at
// Of the traversal:
inline constexpr std::uint32_t located_counter = 4;  // rows that were put down, to be scored
inline constexpr std::uint32_t lost_counter = 5;     // 1: some of them was not remembered, it may come twice
inline constexpr std::uint32_t turns_counter = 6;    // TraversalCounts, from here to the end
inline constexpr std::uint32_t expanded_counter = 7;
inline constexpr std::uint32_t scored_counter = 8;

inline constexpr std::uint32_t nowhere = 0xffffffff;  // behind all others

// Those that come are read so many at a time, by at most so many threads together.
inline constexpr std::uint32_t most_sharer_bits = 3;
inline constexpr std::uint32_t kept_step = 8 << most_sharer_bits;
PGWARP_HOST_DEVICE constexpr std::uint32_t kept_room(std::uint32_t most_fresh)
{
    return (most_fresh + kept_step - 1) / kept_step * kept_step;
}

// What became of a batch.
struct Taken {
    std::uint32_t entries = 0;       // that came before the queue's end
    std::uint32_t lowest = nowhere;  // the least place that one of them has
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
    // Only what is before it comes in: no_entry while there is room.
    PGWARP_HOST_DEVICE Entry end() const { return end_; }
    PGWARP_HOST_DEVICE bool is_full() const { return end_ != no_entry; }

    // A barrier has to follow.
    PGWARP_HOST_DEVICE void clear()
    {
        for (std::uint32_t i = group_.rank(); i < length_; i += group_.size()) entries()[i] = no_entry;
        if (group_.rank() != 0) return;
        reset_counters(0);
        reset_counters(1);
    }

    // The first `count` entries of another queue in the same memory. A barrier has to follow.
    PGWARP_HOST_DEVICE void continue_with(const Queue& other, std::uint32_t count)
    {
        side_ = other.side_;
        turn_ = other.turn_;
        end_ = count < length_ ? no_entry : entries()[length_ - 1];
        for (std::uint32_t i = count + group_.rank(); i < length_; i += group_.size()) entries()[i] = no_entry;
    }

    // An entry of a batch, by one thread; called by whole warps, with no_entry where a thread has none.
    PGWARP_HOST_DEVICE void offer(Entry entry) const
    {
        const bool comes = lies_before(entry, end_);
        const std::uint32_t place = group_.count(&memory_.counters()[kept_counter + turn_], comes);
        if (comes) memory_.kept()[place] = entry;
    }

    // Whether of very many that are offered at once those are dropped early that cannot stay. A group among many has no
    // registers for it.
    PGWARP_HOST_DEVICE bool trims() const { return Group::alone && length_ < parts(); }

    // Takes in what was offered since the last time, by all threads after a barrier. By one thread each are called
    // comes(row, place) for each row that comes before the queue's end, with its place among those that were there,
    // entered(row) for each that gets a place, left(row) for each that loses its own. `repeats`: a row may have been
    // offered twice, or be in the queue. All threads see the queue as it is then.
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
        if constexpr (Group::alone) {
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
    // Parts of a batch, each the neighbouring threads' that share it: twice as many as stay, where there are threads.
    PGWARP_HOST_DEVICE std::uint32_t parts() const { return group_.size() >> group_.sharer_bits(2 * length_); }

    // There is room for a key of each part where more than so many came.
    PGWARP_HOST_DEVICE bool pays_to_trim(std::uint32_t kept) const
    {
        return kept > 3 * length_ && kept > parts() && trims();
    }

    PGWARP_HOST_DEVICE static std::uint32_t key_of(Entry entry) { return static_cast<std::uint32_t>(entry >> 32); }

    // Drops most of those that came but are behind the `length` first of them, none of which is there twice: how many
    // are left. For all threads, and the counter of those that came.
    PGWARP_HOST_DEVICE std::uint32_t trim(std::uint32_t kept, std::uint32_t* counter)
    {
        const std::uint32_t bound = bound_of(kept, counter);
        // What is left is written over what all threads have read.
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

    // The key of the `length` least of the least keys of all parts: so many entries at least are not behind it. Sets
    // the counter to 0.
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

    // Of those that are the same, one stays. Seldom needed, so it takes its time.
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

    // Of those that come, how many that are the calling thread's to count are before an entry: of every 2^sharer_bits
    // pairs of them it has one.
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

    // Those that come, and then the queue's entries. Where there are more threads, several share one.
    template <class Comes, class Entered, class Left>
    PGWARP_HOST_DEVICE void place_all(std::uint32_t kept, Entry* to, const Comes& comes, const Entered& entered,
                                      const Left& left)
    {
        const std::uint32_t count = kept + length_;
        const std::uint32_t sharer_bits = group_.sharer_bits(count);
        const std::uint32_t together = group_.size() >> sharer_bits;
        // Of a group alone, warps that have none leave the others their time.
        const std::uint32_t end = Group::alone ? count - smaller(count, group_.first_of_warp() >> sharer_bits) : count;
        // All threads of a warp go through the same turns.
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
    std::uint32_t turn_ = 0;  // of the counters
    Entry end_ = no_entry;    // the last entry
};

}  // namespace pgwarp::cuda::graph
