#include "graph/launch_config.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace pgwarp::cuda::graph
{

namespace
{

std::uint32_t setting(const ParameterList& settings, const char* name, std::size_t otherwise, std::size_t least,
                      std::size_t most)
{
    const std::int64_t given = settings.get(name, 0);
    const std::size_t value = given > 0 ? static_cast<std::size_t>(given) : otherwise;
    return static_cast<std::uint32_t>(std::clamp(value, least, std::max(least, most)));
}

// The least b with 2^b >= words.
std::uint32_t bits_of(std::size_t words)
{
    return static_cast<std::uint32_t>(std::countr_zero(std::bit_ceil(words)));
}

std::uint32_t warps_of(std::uint32_t lanes)
{
    return (lanes + 31) / 32;
}

constexpr std::uint32_t most_lanes = 512;
constexpr std::uint32_t least_bits = 9;  // of the words of visited rows
constexpr std::uint32_t most_bits = 13;
constexpr std::size_t resident_threads = 1024;  // threads of a full multiprocessor, with 64 registers each
constexpr std::size_t reserved_bytes = 1024;    // of shared memory, with each block

// The bits for a query that has a multiprocessor to itself: room for about twice the rows that it meets. Clearing more
// would take longer than it saves. Where blocks share scores, only rows that enter the queue are remembered.
std::uint32_t most_bits_exclusive(const LaunchConfig& shape)
{
    constexpr std::uint32_t usual = 14;
    constexpr std::uint32_t sharing = 12;
    const TraversalShape& traversal = shape.traversal;
    if (shape.shares_scores) return std::clamp(bits_of(16 * std::size_t{traversal.ef}), sharing, most_bits);
    return traversal.ef * traversal.degree > (1U << usual) / 2 ? usual + 1 : usual;
}

// A full filter gives false positives, which skip rows. So a filter gets more bits than the rows that it must hold.
std::uint32_t option_bits(const LaunchConfig& shape)
{
    const std::size_t ef = shape.traversal.ef;
    const std::size_t live = shape.traversal.length + shape.traversal.steps * shape.traversal.degree;
    if (shape.traversal.deletes || shape.traversal.selected) {
        return std::max(bits_of(2 * live), shape.visited == VisitedKind::bloom ? bits_of(8 * ef) : 0U);
    }
    return std::clamp(bits_of(std::max(16 * ef, 2 * live)), least_bits, most_bits);
}

constexpr std::uint32_t few_together = 4;  // rows that a block expands together where blocks share a multiprocessor
constexpr std::uint32_t early_rows = 4;    // rows of a turn while the queue is not full: these are seldom near
static_assert(early_rows <= few_together);

// More rows a turn mean fewer turns, but also rows that more turns would not have expanded. In short searches,
// expanding more than most_together rows a turn costs large batches more than it saves single queries. Long searches
// take multiples of few_together.
std::size_t default_steps(std::size_t ef)
{
    constexpr std::size_t long_search = 96;
    if (ef < long_search) return most_together;
    return std::min<std::size_t>(ef / 6 / few_together * few_together, most_steps);
}

// The blocks with shared_bytes of shared memory that a multiprocessor holds at a time.
std::size_t resident_blocks(std::size_t shared_bytes, const DeviceLimits& limits)
{
    return std::clamp<std::size_t>(limits.shared_bytes / (shared_bytes + reserved_bytes), 1, 32);
}

struct Room {
    std::uint32_t lanes;
    std::uint32_t bits;
};

// The threads of a query, and the bits of its visited rows. Few queries get many threads each. Many queries get the
// fewest threads with which a full multiprocessor leaves each query memory for eight words of visited rows per entry of
// the queue; with that, about one search in two forgets once. The words take the rest of that memory. bytes(lanes,
// bits): the shared memory of a query.
template <class Bytes>
Room default_room(const LaunchConfig& shape, std::size_t count, const DeviceLimits& limits, const Bytes& bytes)
{
    const std::size_t by_count = limits.multiprocessors * resident_threads / std::max<std::size_t>(1, count);
    Room room{static_cast<std::uint32_t>(std::bit_floor(std::clamp<std::size_t>(by_count, 64, most_lanes))), 0};
    const std::uint32_t enough = std::clamp(bits_of(8 * std::size_t{shape.traversal.ef}), least_bits, most_bits);
    for (;; room.lanes *= 2) {
        const std::size_t own = limits.shared_bytes * room.lanes / resident_threads;
        const auto fits = [&](std::uint32_t bits) { return bytes(room.lanes, bits) + reserved_bytes <= own; };
        room.bits = !shape.plain() ? option_bits(shape) : shape.exclusive ? most_bits_exclusive(shape) : most_bits;
        while (shape.plain() && room.bits > enough && !fits(room.bits)) --room.bits;
        if (fits(room.bits) || room.lanes >= most_lanes / 2) return room;
    }
}

// 16 bytes of a row for each thread, 32 where rows are long, within the bounds.
std::uint32_t default_logical_warp(const DeviceLimits& limits)
{
    const std::size_t wanted = std::max(std::min<std::size_t>(limits.row_bytes / 16, 8), limits.row_bytes / 32);
    return static_cast<std::uint32_t>(std::bit_floor(std::clamp<std::size_t>(wanted, 4, 32)));
}

// Whether blocks share scores. It pays off where a single block would take longer to read and score the rows of a turn
// than the cluster takes for its barriers.
bool default_sharing(const LaunchConfig& shape, const DeviceLimits& limits)
{
    constexpr std::size_t least_bytes = std::size_t{96} << 10;
    const TraversalShape& traversal = shape.traversal;
    return traversal.steps > most_together ||
           std::size_t{traversal.steps} * traversal.degree * limits.row_bytes >= least_bytes;
}

// The number of blocks of a query. Blocks that share scores are the most with which the batch takes half of the device:
// two of them save most of the time that eight save. Where only seeds are shared, blocks are fewer, since each needs
// enough seeds to outweigh the barriers and the first block merges the entries of all.
void choose_cluster(const ParameterList& settings, LaunchConfig& shape, std::size_t count, const DeviceLimits& limits)
{
    constexpr std::size_t most_blocks = 8;
    constexpr std::size_t most_sharing = 4;
    constexpr std::size_t seeds_each = 128;
    if (!limits.clusters || !shape.exclusive || !shape.plain()) return;
    const bool shares_scores = setting(settings, "help", default_sharing(shape, limits) ? 2 : 1, 1, 2) == 2;
    const std::size_t of_use = std::clamp<std::size_t>(shape.seeds / seeds_each, 1, most_sharing);
    const std::size_t blocks = shares_scores ? most_blocks : std::bit_floor(of_use);
    std::size_t otherwise = blocks;
    while (otherwise > 1 && 2 * count * otherwise > limits.multiprocessors)
        otherwise = shares_scores ? otherwise / 2 : 1;
    shape.cluster = std::bit_floor(setting(settings, "cluster", otherwise, 1, most_blocks));
    shape.shares_scores = shares_scores && shape.cluster > 1;
}

// The rows that a batch of one turn must hold.
std::uint32_t least_batch(const LaunchConfig& shape)
{
    const TraversalShape& traversal = shape.traversal;
    const std::uint32_t steps = shape.shares_scores ? traversal.steps : traversal.together();
    return std::max(32U, steps * traversal.degree);
}

void use_one_block(LaunchConfig& shape)
{
    shape.cluster = 1;
    shape.shares_scores = false;
}

// The number of the nearest seeds that a search keeps: its starts, and further seeds that may be among the best `ef`
// rows, estimated at several times their share of all rows. They find rows that no edges lead to, which matters where
// rows are few.
std::uint32_t noted_seeds(const LaunchConfig& shape, const DeviceLimits& limits)
{
    constexpr std::size_t most_noted = 1024;
    const std::size_t ef = shape.traversal.ef;
    const std::size_t near = 4 * ef * shape.seeds / std::max<std::size_t>(1, limits.rows);
    return static_cast<std::uint32_t>(std::min<std::size_t>({shape.starts + 8 + near, ef, shape.seeds, most_noted}));
}

// A block with a multiprocessor to itself mostly waits for memory, so it prefetches rows of the next turn and vectors
// that will be ranked. Blocks that share a multiprocessor hide the latency of each other.
void read_ahead(LaunchConfig& shape)
{
    TraversalShape& traversal = shape.traversal;
    const bool ahead = shape.exclusive && shape.plain();
    traversal.ahead = ahead && !shape.shares_scores ? traversal.together() : 0;
    traversal.near_places = ahead ? traversal.length : 2 * traversal.together();
    traversal.ranked = ahead ? shape.wanted : 0;
}

// An estimate of the queries whose launch ends in time: turns of some microseconds each, and reads of about half of the
// neighbours' rows at a multiprocessor's share of the bandwidth.
std::uint32_t launch_queries(const LaunchConfig& shape, const DeviceLimits& limits)
{
    constexpr double launch_seconds = 1.5e-3;
    constexpr double turn_seconds = 3e-6;
    constexpr double bandwidth = 3e10;
    const double expanded = 4 + 1.2 * shape.traversal.ef;
    const double turns = 2 + expanded / shape.traversal.steps;
    const double read = expanded * shape.traversal.degree / 2 * static_cast<double>(limits.row_bytes) / bandwidth;
    const std::size_t blocks = std::min<std::size_t>(resident_blocks(shape.shared_bytes, limits),
                                                     std::max(1UL, resident_threads / shape.block_threads()));
    const double resident = static_cast<double>(blocks) * shape.groups;
    // A turn takes longer the more rows each thread has to score.
    const double slower = 1 + shape.traversal.steps * shape.traversal.degree / (4.0 * shape.lanes);
    const double wave = turns * turn_seconds * slower + read * resident;
    const double queries =
        std::max(1.0, launch_seconds / wave) * resident * static_cast<double>(limits.multiprocessors);
    return static_cast<std::uint32_t>(std::min(queries, 1e6));
}

LaunchConfig config_for(const ParameterList& settings, std::size_t ef, std::size_t wanted, std::size_t count,
                        const DeviceLimits& limits)
{
    LaunchConfig shape;
    TraversalShape& traversal = shape.traversal;
    shape.wanted = static_cast<std::uint32_t>(std::clamp<std::size_t>(wanted, 1, ef));
    traversal.ef = static_cast<std::uint32_t>(ef);
    const bool unbounded = settings.get("unbounded_queue", 0) > 0;
    const std::uint32_t kept = setting(settings, "queue_length", ef, ef, std::max<std::size_t>(ef, most_ef));
    traversal.length = static_cast<std::uint32_t>(unbounded ? 4 * ef : kept);
    traversal.degree = static_cast<std::uint32_t>(limits.degree);
    traversal.steps = setting(settings, "multi_step", default_steps(ef), 1, std::min<std::size_t>(ef, most_steps));
    traversal.most_early = early_rows;
    traversal.degree_inverse = inverse_of(traversal.degree);
    traversal.deletes = settings.get("visited_deletion", 0) > 0;
    traversal.selected = traversal.deletes || settings.get("selected_insertion", 0) > 0;
    shape.exclusive = count <= limits.multiprocessors;
    if (!shape.exclusive) traversal.most_together = few_together;
    shape.visited = static_cast<VisitedKind>(std::clamp<std::int64_t>(settings.get("visited", 0), 0, 2));
    if (shape.visited == VisitedKind::bloom) traversal.deletes = false;
    shape.seeds = setting(settings, "seeds", limits.seeds, 1, limits.seeds);
    choose_cluster(settings, shape, count, limits);
    traversal.most_batch = least_batch(shape);
    read_ahead(shape);
    shape.starts = setting(settings, "starts", 16, 1, std::min<std::size_t>(shape.seeds, most_starts));
    traversal.again = noted_seeds(shape, limits);
    // Tiles compare halves, so they propose a few more seeds, of which the traversal keeps the best.
    const std::uint32_t routes = count <= few_queries && shape.seeds <= most_looked_at ? 2 : 1;
    const bool looks = limits.bits || setting(settings, "routes", routes, 1, 2) == 2;
    const std::uint32_t noted = std::max(shape.starts, traversal.again);
    shape.offered = looks ? 0 : std::min(shape.seeds, noted + 4 + noted / 4);

    shape.query_bytes = static_cast<std::uint32_t>(limits.query_bytes);
    const auto bytes = [&] { return shape.layout().end * shape.groups; };
    const Room room = default_room(shape, count, limits, [&](std::uint32_t lanes, std::uint32_t bits) {
        TraversalShape some = traversal;
        some.warps = warps_of(lanes);
        return std::size_t{shared_layout(some, bits, shape.query_bytes, 0).end};
    });
    shape.visited_bits = setting(settings, "visited_bits", room.bits, 5, 15);
    const std::uint32_t queries_of_warp = std::bit_floor(setting(settings, "multi_query", 1, 1, 4));
    shape.lanes = std::bit_floor(setting(settings, "lanes", room.lanes, 8, most_lanes));
    if (queries_of_warp > 1) shape.lanes = 32 / queries_of_warp;
    shape.groups = shape.lanes < 32 ? 32 / shape.lanes : 1;
    traversal.warps = warps_of(shape.lanes);
    shape.logical_warp = std::bit_floor(setting(settings, "team", default_logical_warp(limits), 4, 32));
    shape.logical_warp = std::min(shape.logical_warp, shape.lanes);
    if (shape.lanes <= 32 || (!looks && !shape.shares_scores)) use_one_block(shape);
    traversal.most_batch = least_batch(shape);
    shape.ranks = shape.exclusive && shape.plain() && shape.lanes > 32 &&
                  shape.wanted <= std::min(most_ranked_in_place, traversal.most_batch);
    // Where shared memory is short, reduce in this order: bits of visited rows in a cluster, the cluster, bits of
    // visited rows, read-ahead, several queries a block, the length of the queue, rows of a turn.
    while (shape.shares_scores && bytes() > limits.shared_bytes && shape.visited_bits > least_bits)
        --shape.visited_bits;
    if (bytes() > limits.shared_bytes) use_one_block(shape);
    traversal.most_batch = least_batch(shape);
    while (bytes() > limits.shared_bytes && shape.visited_bits > 5) --shape.visited_bits;
    if (bytes() > limits.shared_bytes) traversal.ahead = 0;
    if (bytes() > limits.shared_bytes && shape.groups > 1) {
        shape.groups = 1;
        shape.lanes = 32;
    }
    if (bytes() > limits.shared_bytes) traversal.length = traversal.ef;
    while (bytes() > limits.shared_bytes && traversal.steps > 1) {
        traversal.steps /= 2;
        traversal.most_batch = least_batch(shape);
    }
    // Seeds are scored in large batches where there is room.
    for (std::uint32_t together = count <= few_queries ? 2048 : 512; looks && together > traversal.most_batch;
         together /= 2) {
        const std::uint32_t larger = std::max(least_batch(shape), std::min(together, shape.seeds));
        const std::uint32_t before = std::exchange(traversal.most_batch, larger);
        if (bytes() <= limits.shared_bytes) break;
        traversal.most_batch = before;
    }
    // The first block takes in the entries of the other blocks as one batch.
    const std::uint32_t best = (shape.cluster - 1) * noted_starts(traversal, shape.starts);
    if (std::min(best, shape.seeds) > traversal.most_batch) use_one_block(shape);
    shape.chosen = std::min(kept, traversal.length);
    shape.shared_bytes = bytes();
    shape.launch_queries = launch_queries(shape, limits);
    return shape;
}

}  // namespace

std::size_t ef_search_of(const ParameterList& settings, std::int64_t effort, std::size_t k, std::size_t rows)
{
    constexpr std::size_t uncalibrated = 128;
    std::int64_t ef = settings.get("ef_search", 0);
    if (ef <= 0) ef = effort;
    const std::size_t wanted = ef > 0 ? static_cast<std::size_t>(ef) : uncalibrated;
    return std::min(std::max(wanted, k), std::max<std::size_t>(rows, 1));
}

std::size_t rows_to_rank(std::size_t k)
{
    return k + k / 4 + 14;
}

// A query of a small batch has the most threads, and each warp takes shared memory. So where a query of a large batch
// fits, all batches do.
LaunchConfig launch_config(const ParameterList& settings, std::size_t ef, std::size_t wanted, std::size_t count,
                           const DeviceLimits& limits)
{
    constexpr std::size_t large = std::size_t{1} << 20;
    const LaunchConfig shape = config_for(settings, ef, wanted, count, limits);
    if (shape.shared_bytes <= limits.shared_bytes || count >= large) return shape;
    return config_for(settings, ef, wanted, large, limits);
}

}  // namespace pgwarp::cuda::graph
