// The bounded queue of a search (SONG section 4): the best rows seen so far, sorted, those not yet expanded among
// them, in memory that a group of threads shares. New rows come in batches, which are sorted and merged by each thread
// finding the place of its own entries. Free of CUDA.
#pragma once

#include <cstdint>

#include "graph/entry.h"

namespace pgwarp::cuda::graph
{

// A Memory, shared by the group of a search, has
//   Entry* entries()           [length], sorted
//   Entry* fresh()             [most_fresh]: scored rows on their way in
//   Entry* kept()              [most_fresh]: those of them that get in
//   std::uint32_t* place()     [most_fresh]: where they come to lie
//   std::uint32_t* counters()  [queue_counters]
// and, for the traversal, rows() [most_fresh], located ones, parents() [steps], places in the queue, then rows, and
// again() [again], starts.// Functions, so that a device keeps no address of each in a register.

inline constexpr std::uint32_t queue_counters = 7;
inline constexpr std::uint32_t kept_counter = 0;     // entries in `kept`
inline constexpr std::uint32_t lowest_counter = 1;   // the least place that an entry gets in at
inline constexpr std::uint32_t fresh_counter = 2;    // rows that were located, of the traversal
inline constexpr std::uint32_t parent_counter = 3;   // rows to be expanded, of the traversal
inline constexpr std::uint32_t next_counter = 4;     // where the next search for rows to be expanded begins
inline constexpr std::uint32_t lost_counter = 5;     // 1: some located row was not remembered, it may come twice
inline constexpr std::uint32_t cluster_counter = 6;  // rows that the blocks of a cluster are to score

// What became of a batch.
struct Taken {
    std::uint32_t entries = 0;  // that came before the queue's end
    std::uint32_t lowest = 0;   // the least place that one of them has; the queue's length for none
};

template <class Group, class Memory>
class Queue
{
public:
    PGWARP_HOST_DEVICE Queue(const Group& group, const Memory& memory, std::uint32_t length)
        : group_(group), memory_(memory), length_(length)
    {
    }

    // A barrier has to follow.
    PGWARP_HOST_DEVICE void clear()
    {
        for (std::uint32_t i = group_.rank(); i < length_; i += group_.size()) memory_.entries()[i] = no_entry;
        reset_counters();
    }

    // Takes in fresh[0, count), which all threads see; what is in `fresh` is lost. By one thread each are called
    // comes(row, place) for each row that comes before the queue's end, with its place among those that are there,
    // entered(row) for each that gets a place, left(row) for each that loses its own. `repeats`: a row may come twice.
    // All threads see the queue as it is then.
    template <class Comes, class Entered, class Left>
    PGWARP_HOST_DEVICE Taken take_in(std::uint32_t count, bool repeats, const Comes& comes, const Entered& entered,
                                     const Left& left)
    {
        keep(count, repeats, comes);
        group_.sync();
        const std::uint32_t kept = memory_.counters()[kept_counter];
        const std::uint32_t lowest = memory_.counters()[lowest_counter];
        if (kept == 0) return {0, length_};
        sort(kept);
        group_.sync();
        reset_counters();
        shift(kept, lowest, left);
        for (std::uint32_t i = group_.rank(); i < kept; i += group_.size()) {
            const std::uint32_t place = memory_.place()[i];
            if (place >= length_) continue;
            memory_.entries()[place] = memory_.kept()[i];
            entered(row_of(memory_.kept()[i]));
        }
        group_.sync();
        return {kept, lowest};
    }

    // What another queue of other length in the same memory has left. A barrier has to follow.
    PGWARP_HOST_DEVICE void reset_counters()
    {
        if (group_.rank() != 0) return;
        memory_.counters()[kept_counter] = 0;
        memory_.counters()[lowest_counter] = length_;
    }

private:
    // What comes before the queue's end and is not in it.
    template <class Comes>
    PGWARP_HOST_DEVICE void keep(std::uint32_t count, bool repeats, const Comes& comes)
    {
        const Entry worst = memory_.entries()[length_ - 1];
        for (std::uint32_t i = group_.rank(); i < count; i += group_.size()) {
            const Entry entry = memory_.fresh()[i];
            if (place_of(entry) >= place_of(worst)) continue;
            const std::uint32_t place = lower_bound_of(memory_.entries(), 0, length_, entry);
            if (place_of(memory_.entries()[place]) == place_of(entry)) continue;
            bool again = false;
            for (std::uint32_t j = 0; repeats && j < i; ++j) again = again || memory_.fresh()[j] == entry;
            if (again) continue;
            const std::uint32_t at = group_.count(&memory_.counters()[kept_counter]);
            memory_.kept()[at] = entry;
            memory_.place()[at] = place;
            comes(row_of(entry), place);
            group_.lower(&memory_.counters()[lowest_counter], place);
        }
    }

    // No two are the same, so each counts those before it, by several threads where there are more of them. The sorted
    // ones go to `fresh`.
    PGWARP_HOST_DEVICE void sort(std::uint32_t kept)
    {
        const std::uint32_t shift = group_.sharers(kept);
        const std::uint32_t sharers = 1U << shift;
        const std::uint32_t part = group_.rank() & (sharers - 1);
        // Where threads share there is one turn, which all of them go through.
        const std::uint32_t end = shift > 0 ? group_.size() >> shift : kept;
        for (std::uint32_t i = group_.rank() >> shift; i < end; i += group_.size() >> shift) {
            const Entry entry = memory_.kept()[i < kept ? i : kept - 1];
            std::uint32_t before = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 4
#endif
            for (std::uint32_t j = part; j < kept; j += sharers) before += memory_.kept()[j] < entry ? 1 : 0;
            before = group_.add_up(before, shift);
            if (part != 0 || i >= kept) continue;
            memory_.fresh()[before] = entry;
            memory_.place()[i] += before;
        }
    }

    // Makes room: from the end, as many entries at a time as there are threads. Each is read before a place behind it
    // is written, and no place is written twice.
    template <class Left>
    PGWARP_HOST_DEVICE void shift(std::uint32_t kept, std::uint32_t lowest, const Left& left)
    {
        for (std::uint32_t end = length_; end > lowest;) {
            const std::uint32_t begin = end - lowest > group_.size() ? end - group_.size() : lowest;
            const std::uint32_t i = begin + group_.rank();
            const Entry entry = i < end ? memory_.entries()[i] : no_entry;
            group_.sync();
            end = begin;
            if (entry == no_entry) continue;
            const std::uint32_t place = i + lower_bound_of(memory_.fresh(), 0, kept, entry);
            if (place < length_) {
                memory_.entries()[place] = entry;
            } else {
                left(row_of(entry));
            }
        }
    }

    const Group& group_;
    const Memory& memory_;
    std::uint32_t length_;
};

}  // namespace pgwarp::cuda::graph
