// The merge of the pieces of a query's list: each piece left its first entries, of which the first of all are the
// answer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/answers.h"
#include "rows/candidates.cuh"
#include "rows/certain_rows.h"
#include "rows/near_values.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::rows
{

inline constexpr int merge_threads = 256;
inline constexpr std::uint32_t merge_places = 2048;

// Entries of the pieces: [pieces][width], unordered.
struct Entries {
    std::uint64_t* keys;
    std::uint32_t* rows;
    std::uint32_t* counts;  // [pieces]
    std::uint64_t* leasts;  // [pieces]: the least key
    std::uint32_t width;
};

inline constexpr std::size_t most_entries = std::size_t{1} << 24;  // of the pieces of a chunk

// A choice by bounds leaves at most so many rows, where no more have one value.
constexpr std::uint32_t entries_of_piece(std::uint32_t k)
{
    return k + spare_rows;
}

inline Entries take_entries(Carver& memory, std::size_t pieces, std::uint32_t k)
{
    Entries entries{};
    entries.width = entries_of_piece(k);
    entries.keys = memory.take<std::uint64_t>(pieces * entries.width);
    entries.rows = memory.take<std::uint32_t>(pieces * entries.width);
    entries.counts = memory.take<std::uint32_t>(pieces);
    entries.leasts = memory.take<std::uint64_t>(pieces);
    return entries;
}

// The first k of the entries that a block of merge_threads is offered. Those before the k-th so far are collected, and
// sorted when their places are full. All threads call.
class FirstEntries
{
public:
    // The memory is shared. taken: one number.
    __device__ FirstEntries(std::uint64_t* keys, std::uint32_t* rows, std::uint32_t* taken, std::uint32_t k)
        : keys_(keys), rows_(rows), taken_(taken), k_(k)
    {
        if (threadIdx.x == 0) *taken_ = 0;
        __syncthreads();
    }
    __device__ void offer(bool is_entry, std::uint64_t key, std::uint32_t row)
    {
        const bool comes = is_entry && (key < last_key_ || (key == last_key_ && row < last_row_));
        const std::uint32_t place = take_place(comes, taken_);
        if (comes) {
            keys_[place] = key;
            rows_[place] = row;
        }
        __syncthreads();
        const std::uint32_t count = *taken_;
        if (count + merge_threads > merge_places) {
            sort_candidates<merge_threads>(static_cast<int>(count), keys_, rows_);
            last_key_ = keys_[k_ - 1];
            last_row_ = rows_[k_ - 1];
            if (threadIdx.x == 0) *taken_ = k_;
        }
        __syncthreads();
    }
    // Sorts the entries and returns their number, of which the first k are right.
    __device__ std::uint32_t finish()
    {
        const std::uint32_t count = *taken_;
        sort_candidates<merge_threads>(static_cast<int>(count), keys_, rows_);
        return count;
    }

private:
    static_assert(merge_places - merge_threads >= most_compared_k, "a full sort has k entries");
    std::uint64_t* keys_;
    std::uint32_t* rows_;
    std::uint32_t* taken_;
    std::uint32_t k_;
    std::uint64_t last_key_ = ~std::uint64_t{0};
    std::uint32_t last_row_ = no_row;
};

struct MergeShared {
    std::uint64_t keys[merge_places];
    std::uint32_t rows[merge_places];
    std::uint32_t pieces[merge_threads];
    std::uint32_t taken;
    std::uint32_t chosen;
};

// A key that none of the first k entries comes after: the k-th least of the pieces' least keys.
__device__ inline std::uint64_t last_least(const Entries& entries, std::uint32_t begin, std::uint32_t end,
                                           std::uint32_t k, MergeShared& shared)
{
    if (end - begin <= k) return ~std::uint64_t{0};
    FirstEntries leasts(shared.keys, shared.rows, &shared.taken, k);
    for (std::uint32_t base = begin; base < end; base += merge_threads) {
        const std::uint32_t piece = base + threadIdx.x;
        leasts.offer(piece < end, piece < end ? entries.leasts[piece] : 0, piece);
    }
    leasts.finish();
    const std::uint64_t last = shared.keys[k - 1];
    __syncthreads();
    return last;
}

// Writes the first k of the entries of a query's pieces [begin, end), of which most have none of them where they are
// many.
__device__ inline void merge_pieces(const Entries& entries, std::uint32_t begin, std::uint32_t end, std::uint32_t query,
                                    std::uint32_t k, MergeShared& shared, const Answers& out)
{
    const std::uint64_t last = last_least(entries, begin, end, k, shared);
    FirstEntries first(shared.keys, shared.rows, &shared.taken, k);
    for (std::uint32_t base = begin; base < end; base += merge_threads) {
        const std::uint32_t piece = base + threadIdx.x;
        if (threadIdx.x == 0) shared.chosen = 0;
        __syncthreads();
        const bool chosen = piece < end && entries.leasts[piece] <= last;
        const std::uint32_t place = take_place(chosen, &shared.chosen);
        if (chosen) shared.pieces[place] = piece;
        __syncthreads();
        const std::uint32_t places = shared.chosen * entries.width;
        for (std::uint32_t at = 0; at < places; at += merge_threads) {
            const std::uint32_t i = at + threadIdx.x;
            const std::uint32_t from = i < places ? shared.pieces[i / entries.width] : 0;
            const std::uint32_t entry = i % entries.width;
            const bool is_entry = i < places && entry < entries.counts[from];
            const std::size_t place_of_entry = std::size_t{from} * entries.width + entry;
            first.offer(is_entry, is_entry ? entries.keys[place_of_entry] : 0,
                        is_entry ? entries.rows[place_of_entry] : 0);
        }
        // The list of pieces is read before it is made again.
        __syncthreads();
    }
    const std::uint32_t count = first.finish();
    emit_candidates<merge_threads>(static_cast<int>(count), shared.keys, shared.rows, query, k, out);
    if (threadIdx.x == 0) out.found[query] = min(count, k);
}

}  // namespace pgwarp::cuda::rows
