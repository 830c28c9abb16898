// The device pointers to a mirror of pqtree that kernels take.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "methods/pqtree/tree.h"
#include "pqtree/layout.h"
#include "rows/view.h"

namespace pgwarp::cuda::pqtree
{

// The dimensions of a line part.
struct LineSpan {
    std::uint16_t padded;  // first dimension in a padded vector
    std::uint16_t first;   // first dimension
    std::uint16_t width;
    std::uint16_t part;  // of the tree
};

// The constants of a line (methods/pqtree/lines.h).
struct LineConstants {
    float first;         // lambda of the byte 0
    float step;          // that a byte adds
    float length;        // c^2 of the score: 0 for inner product
    std::uint32_t ends;  // the two centroids: from | to << 16
};

struct TreeView {
    bool squared = true;  // scores are squared L2 distances, else negative inner products
    std::uint32_t dimensions = 0;
    std::uint32_t parts = 1;
    std::uint32_t k1 = 2;
    std::uint32_t k2 = 1;
    std::uint32_t line_parts = 1;
    std::uint32_t lines = 1;                         // of a line part
    std::uint32_t padded_query = 4;                  // floats of a padded vector
    std::uint32_t padded_level1 = 4;                 // k1, padded
    std::uint32_t begin[most_tree_parts + 1] = {};   // first dimension of each part
    std::uint32_t padded[most_tree_parts + 1] = {};  // the same in a padded vector
    const LineSpan* spans = nullptr;                 // [line_parts]
    const std::uint16_t* part_of = nullptr;          // [dimensions]: the line part of each dimension
    const float* level1 = nullptr;                   // [dimensions][padded_level1]
    const float* level2 = nullptr;                   // [k1 * k2][padded_query]
    const LineConstants* constants = nullptr;        // [line_parts][lines]

    PGWARP_HOST_DEVICE std::uint32_t leaves() const { return k1 * k2; }
};

// Positions [begin, begin + rows).
struct BinRows {
    std::uint32_t begin;
    std::uint32_t rows;
};

// The lists of rows: positions [begin[slot], begin[slot + 1]), those of a bin side by side.
struct ListsView {
    BinSlots slots;
    const std::uint32_t* begin = nullptr;   // [slots + 1]
    const std::uint64_t* bin_at = nullptr;  // [positions] where bins are hashed
    const uint4* codes = nullptr;           // [positions][code_groups]
    const std::uint16_t* biases = nullptr;  // [positions]: the bias is lowest_bias + bias_step * this
    float lowest_bias = 0;
    float bias_step = 0;

    // The first position in [first, last), of one slot, whose bin is `bin` or a later one.
    PGWARP_HOST_DEVICE std::uint32_t first_of(std::uint64_t bin, std::uint32_t first, std::uint32_t last) const
    {
        while (first < last) {
            const std::uint32_t middle = first + (last - first) / 2;
            if (bin_at[middle] < bin) first = middle + 1;
            if (bin_at[middle] >= bin) last = middle;
        }
        return first;
    }
    // The rows of a bin, without those of other bins in its slot, which lie in order of bins.
    PGWARP_HOST_DEVICE BinRows rows_of(std::uint64_t bin) const
    {
        const std::uint64_t slot = slots.slot(bin);
        std::uint32_t first = begin[slot];
        const std::uint32_t last = begin[slot + 1];
        if (bin_at == nullptr) return {first, last - first};
        first = first_of(bin, first, last);
        return {first, first_of(bin + 1, first, last) - first};
    }
};

// `full` and `remote` rows are in row order, halves by position.
struct MirrorView : rows::ResidentRows {
    TreeView tree;
    ListsView lists;

    // Whether values are computed from line codes, as the index keeps no vectors.
    PGWARP_HOST_DEVICE bool values_of_codes() const
    {
        return full == nullptr && half.rows == nullptr && remote.halves == nullptr && remote.full == nullptr;
    }
};

}  // namespace pgwarp::cuda::pqtree
