// The two-level product tree (Wieschollek et al., 2016, sections 3.1 and 3.2). The dimensions are split into parts;
// each part has k1 centroids, and each of these has k2 leaves of its own. A bin is a combination of leaves, one of each
// part: there are (k1 k2)^parts bins, and no centroid of a bin is stored.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "methods/pqtree/description.h"
#include "numeric/hash.h"
#include "numeric/host_device.h"
#include "numeric/parallel.h"

namespace pgwarp
{

// First dimension of piece `number` of `pieces` of `width` dimensions: the first pieces are wider by one where the
// width does not divide evenly.
PGWARP_HOST_DEVICE inline std::size_t piece_begin(std::size_t width, std::size_t pieces, std::size_t number)
{
    const std::size_t rest = width % pieces;
    return number * (width / pieces) + (number < rest ? number : rest);
}

struct TreeShape {
    std::size_t dimensions = 1;
    std::size_t parts = 1;  // <= dimensions
    std::size_t k1 = 2;
    std::size_t k2 = 1;

    std::size_t leaves() const { return k1 * k2; }  // of a part
    std::size_t begin(std::size_t part) const { return piece_begin(dimensions, parts, part); }
    std::size_t width(std::size_t part) const { return begin(part + 1) - begin(part); }
    std::uint64_t bins() const
    {
        std::uint64_t bins = 1;
        for (std::size_t part = 0; part < parts; ++part) bins *= leaves();
        return bins;
    }
    friend bool operator==(const TreeShape&, const TreeShape&) = default;
};

struct ProductTree {
    TreeShape shape;
    // Rows of both are the centroids of all parts side by side: the columns of a part hold its own.
    std::vector<float> level1;  // [k1][dimensions]
    std::vector<float> level2;  // [k1 * k2][dimensions]: leaf c * k2 + j is the j-th of centroid c

    const float* centroid(std::size_t part, std::size_t number) const
    {
        return level1.data() + number * shape.dimensions + shape.begin(part);
    }
    const float* leaf(std::size_t part, std::size_t number) const
    {
        return level2.data() + number * shape.dimensions + shape.begin(part);
    }
};

// Reports the progress of a training.
using TreeProgress = std::function<void(std::size_t done, std::size_t total)>;

// Trains the tree on rows [count][dimensions]: k-means of each part, then of the rows of each centroid. With few rows
// centroids repeat. The same rows give the same tree for any size of the pool. Throws Cancelled.
ProductTree train_tree(const TreeShape& shape, std::span<const float> rows, std::uint64_t seed, ThreadPool& pool,
                       const CancelToken* cancel = nullptr, const TreeProgress& progress = {});

// leaves [count][parts]: of each row [count][dimensions] and part, the nearest leaf (L2) of the nearest centroid of the
// first level; ties go to the lower number. Under every metric rows are assigned by L2, so that a bin holds rows that
// are near each other.
void assign_leaves(const ProductTree& tree, std::span<const float> rows, std::span<std::uint16_t> leaves,
                   ThreadPool& pool, const CancelToken* cancel = nullptr);

// The number of a bin: its leaves as digits, that of part 0 first.
template <class Leaf>
PGWARP_HOST_DEVICE inline std::uint64_t bin_of(const Leaf* leaves, std::size_t parts, std::size_t leaves_of_part)
{
    std::uint64_t bin = 0;
    for (std::size_t part = 0; part < parts; ++part) bin = bin * leaves_of_part + leaves[part];
    return bin;
}

// The leaf of a part in a row of `codes` (pqtree.h).
PGWARP_HOST_DEVICE inline std::uint16_t leaf_of(const std::uint8_t* code, std::size_t part)
{
    return static_cast<std::uint16_t>(code[2 * part] | code[2 * part + 1] << 8);
}
inline void set_leaf(std::uint8_t* code, std::size_t part, std::uint16_t leaf)
{
    code[2 * part] = static_cast<std::uint8_t>(leaf);
    code[2 * part + 1] = static_cast<std::uint8_t>(leaf >> 8);
}

// Maps bins to slots: a mirror has one list of rows for each slot. There are as many slots as bins where bins are few
// beside the rows; otherwise a power of two, to which bins are hashed. On every device the positions of rows ascend by
// (slot, bin, number of the row): the rows of a bin are side by side, also where other bins share its slot.
struct BinSlots {
    std::uint64_t slots = 1;
    bool hashed = false;

    PGWARP_HOST_DEVICE std::uint64_t slot(std::uint64_t bin) const
    {
        return hashed ? mix_hash(bin) & (slots - 1) : bin;
    }
    // Direct addressing costs an offset of 4 bytes a bin: up to 16 bytes a row, or 256 KiB.
    static BinSlots of(std::uint64_t bins, std::uint64_t rows)
    {
        constexpr std::uint64_t always_direct = 65536;
        if (bins <= std::max(always_direct, 4 * rows)) return {bins, false};
        std::uint64_t slots = always_direct;
        while (slots < 2 * rows) slots *= 2;
        return {slots, true};
    }
};

}  // namespace pgwarp
