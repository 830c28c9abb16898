// Pruning by rank (CAGRA, arXiv 2308.15136, section III-B) by a group of threads for each row, with the edges of
// src/methods/graph/edges.cpp. Free of CUDA: the group is a parameter, as for searches (traversal.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/entry.h"

namespace pgwarp::cuda::graph
{

inline constexpr std::uint32_t no_place = 0xffffffff;

// Memory that the group shares.
struct DetourMemory {
    std::uint32_t* near = nullptr;     // [width]
    std::uint32_t* detours = nullptr;  // [width]
    std::uint32_t* slots = nullptr;    // [2^bits]: hash table of the rows in `near`
    std::uint32_t* places = nullptr;   // [2^bits]: their places in `near`
    std::uint32_t bits = 0;            // 2^bits >= 2 * width
};

// The bits for lists of this width: at most a quarter of the hash table is used.
PGWARP_HOST_DEVICE constexpr std::uint32_t detour_bits(std::uint32_t width)
{
    std::uint32_t bits = 1;
    while ((1U << bits) < 4 * width) ++bits;
    return bits;
}

template <class Group>
class DetourOrder
{
public:
    PGWARP_HOST_DEVICE DetourOrder(Group group, const DetourMemory& memory) : group_(group), memory_(memory) {}

    // Writes to `out` the rows of the list of `row` in nearest [rows][width] with the fewest detours, at most `degree`,
    // and fills up with no_neighbour (all ones). Detours go through the lists of `nearest`.
    PGWARP_HOST_DEVICE void draw(const std::uint32_t* nearest, std::uint32_t width, std::uint32_t row,
                                 std::uint32_t degree, std::uint32_t* out)
    {
        const std::uint32_t slots = 1U << memory_.bits;
        for (std::uint32_t i = group_.rank(); i < slots; i += group_.size()) memory_.slots[i] = no_place;
        for (std::uint32_t i = group_.rank(); i < width; i += group_.size()) {
            memory_.near[i] = nearest[std::size_t{row} * width + i];
            memory_.detours[i] = 0;
        }
        group_.sync();
        for (std::uint32_t i = group_.rank(); i < width; i += group_.size()) {
            if (memory_.near[i] != no_place) remember(memory_.near[i], i);
        }
        group_.sync();
        count_detours(nearest, width);
        group_.sync();
        for (std::uint32_t i = group_.rank(); i < degree; i += group_.size()) out[i] = no_place;
        group_.sync();
        for (std::uint32_t i = group_.rank(); i < width; i += group_.size()) {
            if (memory_.near[i] == no_place) continue;
            const std::uint32_t own = memory_.detours[i];
            std::uint32_t before = 0;
            for (std::uint32_t j = 0; j < width; ++j) {
                const bool comes = memory_.detours[j] != own ? memory_.detours[j] < own : j < i;
                before += comes && memory_.near[j] != no_place ? 1 : 0;
            }
            if (before < degree) out[before] = memory_.near[i];
        }
        group_.sync();
    }

private:
    PGWARP_HOST_DEVICE void remember(std::uint32_t row, std::uint32_t place)
    {
        std::uint32_t slot = first_slot(row);
        while (group_.compare_and_swap(&memory_.slots[slot], no_place, row) != no_place) slot = next(slot);
        memory_.places[slot] = place;
    }
    PGWARP_HOST_DEVICE std::uint32_t place_of_row(std::uint32_t row) const
    {
        for (std::uint32_t slot = first_slot(row);; slot = next(slot)) {
            const std::uint32_t there = memory_.slots[slot];
            if (there == row) return memory_.places[slot];
            if (there == no_place) return no_place;
        }
    }
    // A row at rank r of the list of the i-th neighbour is a detour to that row where the row's own place is after both
    // i and r.
    PGWARP_HOST_DEVICE void count_detours(const std::uint32_t* nearest, std::uint32_t width)
    {
        for (std::uint32_t i = 0; i < width; ++i) {
            const std::uint32_t by = memory_.near[i];
            if (by == no_place) break;
            const std::uint32_t* beyond = nearest + std::size_t{by} * width;
            for (std::uint32_t rank = group_.rank(); rank < width; rank += group_.size()) {
                const std::uint32_t row = beyond[rank];
                if (row == no_place) break;
                const std::uint32_t place = place_of_row(row);
                if (place != no_place && place > i && place > rank) group_.count_one(&memory_.detours[place]);
            }
        }
    }
    PGWARP_HOST_DEVICE std::uint32_t first_slot(std::uint32_t row) const
    {
        return (row * 0x9E3779B1U) >> (32 - memory_.bits);
    }
    PGWARP_HOST_DEVICE std::uint32_t next(std::uint32_t slot) const { return (slot + 1) & ((1U << memory_.bits) - 1); }

    Group group_;
    DetourMemory memory_;
};

// Memory that the group shares while edges are joined.
struct JoinMemory {
    std::uint32_t* rows = nullptr;   // [3 * degree]
    std::uint32_t* order = nullptr;  // [3 * degree]
};

// Joins edges: half of the places for the row's own edges, then reverse edges, then more of its own, without repeats;
// the rest is no_neighbour. forward, out: [degree]; reverse: [reverse_count].
template <class Group>
PGWARP_HOST_DEVICE void join_edges(const Group& group, const JoinMemory& memory, const std::uint32_t* forward,
                                   const std::uint32_t* reverse, std::uint32_t reverse_count, std::uint32_t degree,
                                   std::uint32_t* out)
{
    const std::uint32_t half = (degree + 1) / 2;
    const std::uint32_t others = reverse_count < degree ? reverse_count : degree;
    const std::uint32_t all = half + others + degree - half;
    for (std::uint32_t i = group.rank(); i < all; i += group.size()) {
        const std::uint32_t own = i < half ? i : i - others;
        memory.rows[i] = i >= half && i < half + others ? reverse[i - half] : forward[own];
    }
    for (std::uint32_t i = group.rank(); i < degree; i += group.size()) out[i] = no_place;
    group.sync();
    const auto is_new = [&](std::uint32_t i) {
        if (memory.rows[i] == no_place) return false;
        for (std::uint32_t j = 0; j < i; ++j) {
            if (memory.rows[j] == memory.rows[i]) return false;
        }
        return true;
    };
    if (group.warp() == 0) {
        const std::uint32_t found = group.first_matches(0, all, degree, is_new, memory.order);
        if (group.rank() == 0) memory.order[3 * degree - 1] = found;
    }
    group.sync();
    const std::uint32_t used = memory.order[3 * degree - 1];
    for (std::uint32_t i = group.rank(); i < used; i += group.size()) out[i] = memory.rows[memory.order[i]];
    group.sync();
}

}  // namespace pgwarp::cuda::graph
