// A batch of rows on the way into the queue of a search. Many threads add rows; after scoring, the queue takes the
// entries. Start and turns of a traversal both use it. Free of CUDA; Group and Memory as in traversal.h and queue.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/queue.h"
#include "graph/traversal_shape.h"

namespace pgwarp::cuda::graph
{

// The arguments of the constructor must outlive the object.
template <class Group, class Memory>
class CandidateBatch
{
public:
    // neighbours: [rows][degree].
    PGWARP_HOST_DEVICE CandidateBatch(const Group& group, const TraversalShape& shape, const Memory& memory,
                                      const std::uint32_t* neighbours)
        : group_(group), shape_(shape), memory_(memory), neighbours_(neighbours)
    {
    }

    // The neighbours [degree] of a row.
    PGWARP_HOST_DEVICE const std::uint32_t* neighbours_of(std::uint32_t row) const
    {
        return neighbours_ + static_cast<std::size_t>(row) * shape_.degree;
    }

    // Called first. The caller adds a barrier.
    PGWARP_HOST_DEVICE void clear() const
    {
        clear_located();
        if (!counts_here()) return;
        for (std::uint32_t i = turns_counter; i < queue_counters; ++i) memory_.counters()[i] = 0;
    }

    // Adds to turns_counter or a later counter. The counters are in shared memory, as registers are scarcer.
    PGWARP_HOST_DEVICE void count(std::uint32_t counter, std::uint32_t more) const
    {
        if (counts_here()) memory_.counters()[counter] += more;
    }
    PGWARP_HOST_DEVICE TraversalCounts counts() const
    {
        const std::uint32_t* counters = memory_.counters();
        return {counters[turns_counter], counters[expanded_counter], counters[scored_counter]};
    }

    // The number of rows added, and whether one of them may have been added before.
    PGWARP_HOST_DEVICE std::uint32_t located() const { return memory_.counters()[located_counter]; }
    PGWARP_HOST_DEVICE bool lost() const { return memory_.counters()[lost_counter] != 0; }
    // Sets the number of rows where the caller has written memory.rows() itself. Called by all threads of the group.
    PGWARP_HOST_DEVICE void set_located(std::uint32_t count) const
    {
        if (group_.rank() == 0) memory_.counters()[located_counter] = count;
    }
    PGWARP_HOST_DEVICE void set_lost() const { group_.store(&memory_.counters()[lost_counter], 1); }

    // Adds those of row_of_number(0), ..., row_of_number(count - 1) for which is_wanted(row). Skips no_row_here. Ends
    // with a barrier.
    template <class RowOf, class Wanted>
    PGWARP_HOST_DEVICE void add_rows_if(std::uint32_t count, const RowOf& row_of_number, const Wanted& is_wanted) const
    {
        // All threads of a warp must make the same number of steps.
        for (std::uint32_t base = 0; base < count; base += group_.size()) {
            const std::uint32_t i = base + group_.rank();
            const std::uint32_t row = i < count ? row_of_number(i) : no_row_here;
            const bool comes = row != no_row_here && is_wanted(row);
            const std::uint32_t place = group_.count(&memory_.counters()[located_counter], comes);
            if (comes) memory_.rows()[place] = row;
        }
        group_.sync();
    }
    template <class RowOf>
    PGWARP_HOST_DEVICE void add_rows(std::uint32_t count, const RowOf& row_of_number) const
    {
        add_rows_if(count, row_of_number, [](std::uint32_t) { return true; });
    }

    // Calls take(entry) for the first `count` entries that other groups have scored, by whole warps. The caller adds a
    // barrier.
    template <class Take>
    PGWARP_HOST_DEVICE void take_gathered(std::uint32_t count, const Take& take) const
    {
        for (std::uint32_t base = 0; base < count; base += group_.size()) {
            const std::uint32_t i = base + group_.rank();
            take(i < count ? memory_.gathered()[i] : no_entry);
        }
    }

    // Moves the offered entries into the queue after the rows were scored. The other parameters are those of
    // Queue::take_in().
    template <class Entered, class Left>
    PGWARP_HOST_DEVICE Taken take_scored(Queue<Group, Memory>& queue, std::uint32_t scored, bool repeats,
                                         const Entered& entered, const Left& left) const
    {
        group_.sync();
        clear_located();
        count(scored_counter, scored);
        return queue.take_in(
            repeats, [this](std::uint32_t row, std::uint32_t place) { bring_near(row, place); }, entered, left);
    }
    PGWARP_HOST_DEVICE Taken take_scored(Queue<Group, Memory>& queue, std::uint32_t scored, bool repeats) const
    {
        const auto nothing = [](std::uint32_t) {};
        return take_scored(queue, scored, repeats, nothing, nothing);
    }

private:
    // The last thread counts, as it has the least other work.
    PGWARP_HOST_DEVICE bool counts_here() const { return group_.rank() + 1 == group_.size(); }

    PGWARP_HOST_DEVICE void clear_located() const
    {
        if (group_.rank() != 0) return;
        memory_.counters()[located_counter] = 0;
        memory_.counters()[lost_counter] = 0;
    }

    // Prefetches the links of a row that enters the queue at one of the first places, as it will soon be expanded.
    PGWARP_HOST_DEVICE void bring_near(std::uint32_t row, std::uint32_t place) const
    {
        if (place >= shape_.near_places) return;
        group_.prefetch(neighbours_of(row), shape_.degree * static_cast<std::uint32_t>(sizeof(*neighbours_)));
    }

    const Group& group_;
    const TraversalShape& shape_;
    const Memory& memory_;
    const std::uint32_t* neighbours_;
};

}  // namespace pgwarp::cuda::graph
