// Scores of queries against the rows of inverted lists, by matrix tiles (Faiss paper, section 5: equation 11 split into
// a term of the pair, a term of the row and a product).
//
// Work is cut into items: up to 64 queries that probe one list, and a stretch of that list's rows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/view.h"
#include "rows/scores.h"

namespace pgwarp::cuda::ivfadc
{

inline constexpr std::uint32_t item_rows = 1024;  // the most rows of an item

struct ScanItem {
    std::uint32_t list;
    std::uint32_t first_pair;  // in the order of ScanWork::order
    std::uint32_t pairs;       // 1 .. scan_queries
    std::uint32_t first_row;   // of the list, a multiple of 32
    std::uint32_t rows;        // a multiple of 32
};

// Pairs of a query and a list are numbered query * probes + rank.
struct ScanWork {
    ProbeView probes;
    // For scan_lists(): items of order_pairs(), of which [*first_item, *last_item) are scanned.
    const ScanItem* items = nullptr;
    const std::uint32_t* first_item = nullptr;
    const std::uint32_t* last_item = nullptr;
    const std::uint32_t* order = nullptr;  // pairs sorted by list
    std::uint32_t most_items = 0;          // upper bound of the items, known on the host
    // Tiles of 64 queries, 128 rows and 64 dimensions, for lists of average length: of an item, and of all items.
    std::uint32_t item_tiles = 1;
    std::uint64_t tiles = 0;
    // For scan_pairs() (pair_scan.h), which uses the groups of the probes: the most slots of a query.
    std::uint32_t most_slots = 0;
    std::uint32_t shared_bytes = 64 << 10;  // the most shared memory of a block, 64 KB or more
    const std::uint32_t* dead = nullptr;    // one bit for each position, or null
    // Output of decode_rows(), where codes are decoded once a batch instead of once an item; else null.
    const __half* decoded = nullptr;
};

void scan_lists(const MirrorView& mirror, const QueryView& queries, const ScanWork& work, const DenseScores& out,
                cudaStream_t stream);
void scan_lists(const MirrorView& mirror, const QueryView& queries, const ScanWork& work, const LimitedScores& out,
                cudaStream_t stream);

// Sets item_tiles and tiles for `pairs` pairs with lists of average_rows rows.
void estimate_tiles(const MirrorView& mirror, std::uint64_t pairs, std::uint64_t average_rows, ScanWork& work);

// out [positions][stride]: all rows decoded from codes to halves, times the scale of the half codebooks.
void decode_rows(const MirrorView& mirror, __half* out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
