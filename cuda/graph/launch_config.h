// The launch configuration of a batch: SONG's options and the shape of the work. Each is a setting of the search with a
// default. Free of CUDA, so that tests on the CPU cover it.
//
// Settings (0 or absent = the default; settings of sessions are declared in src/methods/graph/description.cpp):
//   ef_search           rows kept; default: the effort of the batch
//   multi_step          rows expanded a turn (SONG: multi-step probing)
//   visited             0 hash table, 1 Bloom filter, 2 Cuckoo filter
//   visited_bits        the visited rows take 2^visited_bits words for each query
//   queue_length        rows kept beside those that are expanded are found too: so many in all; default: ef_search
//   unbounded_queue     1: the queue is four times as long as the number of rows that are expanded
//   selected_insertion  1: only rows that enter the queue are remembered as visited
//   visited_deletion    1: rows that leave the queue are forgotten; implies selected_insertion
//   multi_query         queries of a warp: 1, 2 or 4
//   seeds               seeds that a query is compared with
//   starts              seeds that a search begins at, beside the first
//   routes              1: matrix tiles compare all queries with the seeds; 2: each traversal compares its query
//   lanes               threads of a query, a power of two from 8 to 512
//   team                threads of a logical warp, which share a row: a power of two from 4 to 32
//   cluster             blocks of a query, 1 to 8, which share its seeds
//   help                2: the blocks also share the scores of each turn; 1: they do not
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
inline constexpr std::size_t few_queries = 32;         // the most queries whose traversals compare them with the seeds
inline constexpr std::uint32_t most_looked_at = 8192;  // the most seeds that they are compared with
inline constexpr std::size_t byte_query_header = 16;   // bytes of StagedBytes before its pieces
inline constexpr std::uint32_t most_ranked_in_place = 256;

// The properties of index and device that decide the configuration.
struct DeviceLimits {
    std::size_t rows = 0;
    std::size_t degree = 0;
    std::size_t seeds = 0;
    std::size_t row_bytes = 0;    // bytes that a score reads
    std::size_t query_bytes = 0;  // bytes of a query in shared memory
    std::size_t multiprocessors = 1;
    std::size_t shared_bytes = 0;  // the most shared memory of a block
    bool clusters = false;         // whether the device has thread-block clusters
    bool bits = false;             // rows are bits: scores have many ties, so the seeds are never compared by tiles
};

// The layout of one query's shared memory: offsets of the arrays in bytes, multiples of 16, and the end.
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
    std::uint32_t length = 0;  // entries of each half of the queue
    std::uint32_t places = 0;  // entries of each warp's list of rows to expand
};

// gathered: entries that other blocks of the cluster may write.
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
    layout.kept = take(kept_room(shape.most_batch) * 8);
    layout.gathered = take(gathered * 8);
    layout.task = take(gathered > 0 ? sizeof(ClusterTask) : 0);
    layout.rows = take(shape.most_batch * 4);
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
    std::uint32_t starts = 0;  // seeds that a search begins at, beside the first, from which all rows can be reached
    // The number of nearest seeds that tiles propose; 0: the traversal compares its query with all seeds itself.
    std::uint32_t offered = 0;
    std::uint32_t lanes = 32;
    std::uint32_t logical_warp = 8;    // threads that share a row
    std::uint32_t groups = 1;          // queries of a block
    std::uint32_t cluster = 1;         // blocks of a query, which share its seeds
    bool shares_scores = false;        // the blocks of a cluster share the scores of each turn
    bool exclusive = false;            // a block has a multiprocessor to itself
    std::uint32_t query_bytes = 0;     // of a query in shared memory
    std::uint32_t chosen = 0;          // rows of the queue from which the ranked ones are chosen
    std::uint32_t wanted = 0;          // rows of the queue that are ranked by their values
    bool ranks = false;                // the block that found them ranks them
    std::uint32_t shared_bytes = 0;    // of a block
    std::uint32_t launch_queries = 0;  // the most queries of a launch, so that it ends in time

    std::uint32_t block_threads() const { return lanes > 32 ? lanes : lanes * groups; }
    // Entries that the first block of a cluster has room for.
    std::uint32_t gathered() const
    {
        const std::uint32_t best = (cluster - 1) * noted_starts(traversal, starts);
        return shares_scores ? std::max(best, traversal.steps * traversal.degree) : best;
    }
    SharedLayout layout() const { return shared_layout(traversal, visited_bits, query_bytes, gathered()); }
    // Whether a turn may have more rows than are expanded together, or the cluster shares scores.
    bool wide() const { return traversal.steps > traversal.together() || shares_scores; }
    // Whether all of SONG's options have their defaults: a hash table that remembers all scored rows.
    bool plain() const { return visited == VisitedKind::hash && !traversal.selected && !traversal.deletes; }
};

// The ef_search of a search for k of `rows` rows. Where it exceeds most_ef, or the queue exceeds the shared memory of a
// block (at some 3,800 with 64 KB), all rows have to be scanned instead.
std::size_t ef_search_of(const ParameterList& settings, std::int64_t effort, std::size_t k, std::size_t rows);

// The rows that are ranked for k wanted ones: scores of bytes and halves may swap near ties.
std::size_t rows_to_rank(std::size_t k);

// The configuration for `count` queries. The settings that decide the answer do not depend on the count. ef <= most_ef;
// wanted: rows to be ranked, at most ef. Settings are reduced to the limits of the device. Where shared_bytes still
// exceeds limits.shared_bytes, the search cannot run on the device, whatever the count: a batch is searched in chunks.
LaunchConfig launch_config(const ParameterList& settings, std::size_t ef, std::size_t wanted, std::size_t count,
                           const DeviceLimits& limits);

}  // namespace pgwarp::cuda::graph
