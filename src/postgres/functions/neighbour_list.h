// The nearest rows of one query while they are collected: a max-heap of at most k.
#pragma once

#include <algorithm>

#include "postgres/functions/query_batch.h"

namespace pgwarp
{

// The order of distance; equal distances are ordered by tid.
inline bool is_nearer(const Neighbour& a, const Neighbour& b)
{
    return a.distance != b.distance ? a.distance < b.distance : a.tid < b.tid;
}

struct NeighbourList {
    Neighbour* items;  // room for k
    uint32 k;
    uint32 count;

    bool is_full() const { return count == k; }
    // For a full list: a further row must be nearer than this.
    double farthest() const { return items[0].distance; }
    void offer(const Neighbour& row)
    {
        if (!is_full()) {
            items[count++] = row;
            std::push_heap(items, items + count, is_nearer);
        } else if (is_nearer(row, items[0])) {
            std::pop_heap(items, items + count, is_nearer);
            items[count - 1] = row;
            std::push_heap(items, items + count, is_nearer);
        }
    }
    void sort() { std::sort_heap(items, items + count, is_nearer); }
};

}  // namespace pgwarp
