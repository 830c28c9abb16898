#include "pqtree/mirror_kernels.h"

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "device/error.h"

namespace pgwarp::cuda::pqtree
{

namespace
{

constexpr int threads = 256;

std::uint32_t blocks_for(std::size_t count)
{
    return static_cast<std::uint32_t>((count + threads - 1) / threads);
}

__global__ void bins_kernel(TreeView tree, StoredCodes stored, std::uint64_t* bins, std::uint32_t* number,
                            std::uint32_t* fault)
{
    const std::size_t row = std::size_t{blockIdx.x} * threads + threadIdx.x;
    if (row >= stored.rows) return;
    const std::uint8_t* code = stored.codes + row * stored.stride;
    std::uint64_t bin = 0;
    bool wrong = false;
    for (std::uint32_t part = 0; part < tree.parts; ++part) {
        const std::uint32_t leaf = leaf_of(code, part);
        wrong = wrong || leaf >= tree.leaves();
        bin = bin * tree.leaves() + min(leaf, tree.leaves() - 1);
    }
    for (std::uint32_t i = 0; i < tree.line_parts; ++i) wrong = wrong || code[2 * tree.parts + i] >= tree.lines;
    bins[row] = bin;
    number[row] = static_cast<std::uint32_t>(row);
    if (wrong) *fault = 1;
}

__global__ void slots_kernel(BinSlots slots, const std::uint64_t* bins, std::size_t rows, std::uint32_t* slot)
{
    const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
    if (i < rows) slot[i] = static_cast<std::uint32_t>(slots.slot(bins[i]));
}

__global__ void bin_at_kernel(const std::uint64_t* bins, const std::uint32_t* row_at, std::size_t rows,
                              std::uint64_t* bin_at)
{
    const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
    if (i < rows) bin_at[i] = bins[row_at[i]];
}

// begin[s] = the first position whose slot is s or a later one. A thread writes the slots between two positions.
__global__ void begins_kernel(const std::uint32_t* slot, std::size_t rows, std::uint64_t slots, std::uint32_t* begin)
{
    const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
    if (i > rows) return;
    const std::uint64_t last = i == rows ? slots : slot[i];
    for (std::uint64_t s = i == 0 ? 0 : std::uint64_t{slot[i - 1]} + 1; s <= last; ++s)
        begin[s] = static_cast<std::uint32_t>(i);
}

__global__ void positions_kernel(const std::uint32_t* row_at, std::size_t rows, std::uint32_t* position_of)
{
    const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
    if (i < rows) position_of[row_at[i]] = static_cast<std::uint32_t>(i);
}

// A thread writes a group of a position, and the first of each position its bias.
__global__ void place_codes_kernel(TreeView tree, StoredCodes stored, const std::uint32_t* row_at, float per_step,
                                   uint4* codes, std::uint16_t* biases)
{
    const std::uint32_t groups = code_groups(tree.line_parts);
    const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
    if (i >= stored.rows * groups) return;
    const std::size_t position = i / groups;
    const auto group = static_cast<std::uint32_t>(i % groups);
    const std::uint8_t* lines = stored.codes + row_at[position] * stored.stride + 2 * tree.parts;
    const std::uint8_t* places = lines + tree.line_parts;
    std::uint8_t bytes[group_bytes] = {};
    for (std::uint32_t j = 0; j < group_parts && group * group_parts + j < tree.line_parts; ++j) {
        bytes[j] = lines[group * group_parts + j];
        bytes[group_parts + j] = places[group * group_parts + j];
    }
    std::uint32_t words[4];
    for (int w = 0; w < 4; ++w) {
        words[w] = bytes[4 * w] | bytes[4 * w + 1] << 8 | bytes[4 * w + 2] << 16 |
                   static_cast<std::uint32_t>(bytes[4 * w + 3]) << 24;
    }
    codes[i] = make_uint4(words[0], words[1], words[2], words[3]);
    if (group > 0) return;
    float bias = 0;
    for (std::uint32_t part = 0; part < tree.line_parts; ++part) {
        const LineConstants line = tree.constants[part * tree.lines + min(std::uint32_t{lines[part]}, tree.lines - 1)];
        const float moved = line.step * static_cast<float>(places[part]);
        bias += moved * moved * line.length;
    }
    biases[position] = static_cast<std::uint16_t>(fminf(rintf(bias * per_step), 65535.0F));
}

// Sorts numbers by keys of at most `largest`; equal keys keep their order.
template <class Key>
void sort(MemoryPool& pool, const Key* keys, Key* sorted, const std::uint32_t* numbers, std::uint32_t* ordered,
          std::size_t count, std::uint64_t largest, cudaStream_t stream)
{
    const int bits = std::max(1, static_cast<int>(std::bit_width(largest)));
    std::size_t bytes = 0;
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted, numbers, ordered, count, 0, bits, stream),
          "ordering rows");
    DeviceArray<std::byte> space(pool, bytes, "pqtree loading", stream);
    check(cub::DeviceRadixSort::SortPairs(space.data(), bytes, keys, sorted, numbers, ordered, count, 0, bits, stream),
          "ordering rows");
}

// Orders the numbers in order.position_of, sorted by bin and then by slot, which keeps the order within a slot; sorted
// [rows]: their slots.
void sort_by_slot_and_bin(MemoryPool& pool, const BinSlots& slots, const DeviceArray<std::uint64_t>& bins,
                          DeviceArray<std::uint32_t>& sorted, const RowOrder& order, cudaStream_t stream)
{
    const std::size_t rows = bins.size();
    DeviceArray<std::uint64_t> ascending(pool, rows, "pqtree loading", stream);
    DeviceArray<std::uint32_t> by_bin(pool, rows, "pqtree loading", stream);
    sort(pool, bins.data(), ascending.data(), order.position_of, by_bin.data(), rows, ~std::uint64_t{0}, stream);
    DeviceArray<std::uint32_t> slot(pool, rows, "pqtree loading", stream);
    slots_kernel<<<blocks_for(rows), threads, 0, stream>>>(slots, ascending.data(), rows, slot.data());
    check_launch("slots of rows");
    sort(pool, slot.data(), sorted.data(), by_bin.data(), order.row_at, rows, slots.slots - 1, stream);
    bin_at_kernel<<<blocks_for(rows), threads, 0, stream>>>(bins.data(), order.row_at, rows, order.bin_at);
    check_launch("bins of positions");
}

}  // namespace

void order_rows(Context& context, const TreeView& tree, const BinSlots& slots, const StoredCodes& stored,
                const RowOrder& order, std::uint32_t* fault, cudaStream_t stream)
{
    MemoryPool& pool = context.pool();
    const std::size_t rows = stored.rows;
    DeviceArray<std::uint64_t> bins(pool, rows, "pqtree loading", stream);
    bins_kernel<<<blocks_for(rows), threads, 0, stream>>>(tree, stored, bins.data(), order.position_of, fault);
    check_launch("bins of rows");
    DeviceArray<std::uint32_t> sorted(pool, rows, "pqtree loading", stream);
    if (slots.hashed) {
        sort_by_slot_and_bin(pool, slots, bins, sorted, order, stream);
    } else {
        DeviceArray<std::uint32_t> slot(pool, rows, "pqtree loading", stream);
        slots_kernel<<<blocks_for(rows), threads, 0, stream>>>(slots, bins.data(), rows, slot.data());
        check_launch("slots of rows");
        sort(pool, slot.data(), sorted.data(), order.position_of, order.row_at, rows, slots.slots - 1, stream);
    }
    begins_kernel<<<blocks_for(rows + 1), threads, 0, stream>>>(sorted.data(), rows, slots.slots, order.begin);
    check_launch("lists of rows");
    positions_kernel<<<blocks_for(rows), threads, 0, stream>>>(order.row_at, rows, order.position_of);
    check_launch("positions of rows");
}

void place_codes(const TreeView& tree, const StoredCodes& stored, const std::uint32_t* row_at, float bias_step,
                 uint4* codes, std::uint16_t* biases, cudaStream_t stream)
{
    const std::size_t groups = stored.rows * code_groups(tree.line_parts);
    if (groups == 0) return;
    place_codes_kernel<<<blocks_for(groups), threads, 0, stream>>>(tree, stored, row_at,
                                                                   bias_step > 0 ? 1 / bias_step : 0.0F, codes, biases);
    check_launch("placing codes");
}

}  // namespace pgwarp::cuda::pqtree
