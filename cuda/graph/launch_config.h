// How a batch is searched: SONG's options and the shape of the work, each a setting of the search, with defaults. Free
// of CUDA, so that it is tested without a device.
//
// Settings (0 or absent = the default; those that sessions choose come from src/methods/graph/description.cpp):
//   ef_search           rows kept; else the effort
//   multi_step          rows expanded a turn (SONG: multi-step probing)
//   visited             0 hash, 1 bloom, 2 cuckoo
//   visited_bits        the visited rows take 2^this words a query
//   unbounded_queue     1: the queue is four times as long as what is expanded of it
//   selected_insertion  1: only rows that enter the queue are remembered as visited
//   visited_deletion    1: and forgotten when they leave it
//   multi_query         queries a warp: 1, 2 or 4
//   seeds, starts       seeds that a query is compared with; how many of them, beside the first, it begins at
//   routes              how seeds are compared: 1 all queries by matrix tiles, 2 each query as it begins
//   lanes               threads of a query, a power of two from 8 to 512
//   team                threads that share a row, a power of two from 4 to 32
//   cluster             blocks of a query, 1 to 8: they share its seeds,
//   help                1: and nothing else; 2: and the scores of each turn
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "graph/block_cluster.h"
#include "graph/queue.h"
#include "graph/traversal_shape.h"
#include "graph/visited.h"
#include "protocol/parameters.h"

namespace pgwarp::cuda::graph
{

inline constexpr std::uint32_t most_ef = 4096;
inline constexpr std::uint32_t most_starts = 128;
inline constexpr std::size_t few_queries = 32;         // look at all seeds themselves ...
inline constexpr std::uint32_t most_looked_at = 8192;  // ... where these are so many at most
inline constexpr std::size_t byte_query_header = 16;   // of a query in bytes, in shared memory
inline constexpr std::uint32_t most_ranked_in_place = 256;

// What a search of an index on a device has to go by.
struct DeviceLimits {
    std::size_t rows = 0;
    std::size_t degree = 0;
    std::size_t seeds = 0;
    std::size_t row_bytes = 0;    // that a score reads
    std::size_t query_bytes = 0;  // of a query in shared memory
    std::size_t multiprocessors = 1;
    std::size_t shared_bytes = 0;  // that a block may have
    bool clusters = false;         // whether the device has thread-block clusters
    bool bits = false;  // rows are bits, whose scores are full of ties: what is proposed of them depends on how
};

// Shared memory of one query: where each array begins, in bytes, and the end. All on 16 bytes.
struct SharedLayout {
    std::uint32_t query = 0;
    std::uint32_t entries = 0;
    std::uint32_t kept = 0;
    std::uint32_t gathered = 0;
    std::uint32_t task = 0;
    std::uint32_t rows = 0;
    std::uint32_t parents = 0;
    std::uint32_t again = 0;
    std::uint32_t counters = 0;
    std::uint32_t visited = 0;
    std::uint32_t end = 0;
    std::uint32_t length = 0;  // entries of each side of the queue
    std::uint32_t places = 0;  // in the queue, of each warp
};

// gathered: entries that the blocks of a cluster may hand over.
PGWARP_HOST_DEVICE constexpr SharedLayout shared_layout(const TraversalShape& shape, std::uint32_t visited_bits,
                                                        std::uint32_t query_bytes, std::uint32_t gathered)
{
    SharedLayout layout;
    std::uint32_t at = 0;
    const auto take = [&at](std::uint32_t bytes) {
        const std::uint32_t begin = at;
        at += (bytes + 15) / 16 * 16;
        return begin;
    };
    layout.length = shape.length;
    layout.places = shape.places();
    layout.query = take(query_bytes);
    layout.entries = take((2 * shape.length + 1) * 8);
    layout.kept = take(kept_room(shape.most_fresh) * 8);
    layout.gathered = take(gathered * 8);
    layout.task = take(gathered > 0 ? sizeof(ClusterTask) : 0);
    layout.rows = take(shape.most_fresh * 4);
    layout.parents = take(shape.warps * shape.places() * 4);
    layout.again = take(shape.again * 4);
    layout.counters = take(queue_counters * 4);
    layout.visited = take(visited_words(visited_bits) * 4);
    layout.end = at;
    return layout;
}

struct LaunchConfig {
    TraversalShape traversal;
    VisitedKind visited = VisitedKind::hash;
    std::uint32_t visited_bits = 0;
    std::uint32_t seeds = 0;
    std::uint32_t starts = 0;  // of them that a search begins at, beside the first, from which all rows can be reached
    // Of the seeds, those that tiles propose, the nearest first; 0: the traversal looks at all itself.
    std::uint32_t offered = 0;
    std::uint32_t lanes = 32;
    std::uint32_t team = 8;
    std::uint32_t groups = 1;          // queries a block
    std::uint32_t cluster = 1;         // blocks a query: they share its seeds
    bool helps = false;                // and its scores
    bool alone = false;                // a block has a multiprocessor to itself
    std::uint32_t query_bytes = 0;     // of a query in shared memory
    std::uint32_t wanted = 0;          // rows of the queue that are ranked by their values
    bool ranks = false;                // by the block that found them
    std::uint32_t shared_bytes = 0;    // of a block
    std::uint32_t launch_queries = 0;  // queries of a launch, so that it ends in time

    std::uint32_t block_threads() const { return lanes > 32 ? lanes : lanes * groups; }
    // Entries that the first block of a cluster has room for.
    std::uint32_t gathered() const
    {
        const std::uint32_t best = (cluster - 1) * noted_starts(traversal, starts);
        return helps ? std::max(best, traversal.steps * traversal.degree) : best;
    }
    SharedLayout layout() const { return shared_layout(traversal, visited_bits, query_bytes, gathered()); }
    // Turns of more rows than are expanded together, or other blocks that help.
    bool wide() const { return traversal.steps > traversal.together() || helps; }
    // The default way of SONG's choices: a table of hashes, all that is scored is remembered.
    bool plain() const { return visited == VisitedKind::hash && !traversal.selected && !traversal.deletes; }
};

// The ef_search of a search for k of so many rows; more than most_ef, or than a block's shared memory holds (some 3,800
// in 64 KB): the rows are to be gone through instead.
std::size_t ef_search_of(const ParameterList& settings, std::int64_t effort, std::size_t k, std::size_t rows);

// The shape for `count` queries. Nothing that decides what is found depends on the count.
// ef <= most_ef; wanted: the rows to be ranked, at most ef. What is asked for is brought to what the device can do.
LaunchConfig launch_config(const ParameterList& settings, std::size_t ef, std::size_t wanted, std::size_t count,
                           const DeviceLimits& limits);

}  // namespace pgwarp::cuda::graph
