#include "pqtree/device_search.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>

#include "pqtree/rank.h"

namespace pgwarp::cuda::pqtree
{

namespace
{

constexpr std::size_t few_queries = 16;
// Floats of queries that kernels read from page-locked memory: sooner than copies arrive, by .25 ms for 10,000 queries
// of 128 dimensions (H100).
constexpr std::size_t most_read_in_place = std::size_t{4} << 20;

// Blocks of a query, where there are multiprocessors for all of them.
std::uint32_t blocks_for(const Mirror& mirror, std::size_t queries)
{
    const std::size_t blocks = static_cast<std::size_t>(mirror.context().multiprocessors()) / queries;
    return std::bit_floor(static_cast<std::uint32_t>(std::clamp<std::size_t>(blocks, 1, most_blocks)));
}

constexpr std::size_t most_queries = std::size_t{1} << 15;
constexpr std::chrono::microseconds watched{500};

// Cycles of a multiprocessor: about 1.4 ms of a launch, and those of a query, measured on an H100.
constexpr double launch_cycles = 2.5e6;
constexpr double query_cycles = 20000;
constexpr double pair_cycles = 0.25;      // of two leaves of a part, which are compared when leaves are sorted
constexpr double candidate_cycles = 2.5;  // of a group of line parts
constexpr std::size_t launch_bus_bytes = std::size_t{64} << 20;

Proposals carve(Carver& memory, const Mirror& mirror, const DevicePlan& plan)
{
    Proposals space;
    const std::size_t blocks = std::size_t{plan.count} * plan.propose.blocks;
    space.keys = memory.take<unsigned long long>(blocks * plan.propose.stride());
    space.counts = memory.take<std::uint32_t>(blocks);
    if (plan.reads_in_place) space.queries = memory.take<float>(plan.count * mirror.dimensions());
    return space;
}

// The values of all rows for one query.
struct Continuation {
    double* values;
    rows::SelectionSpace selection;
};

Continuation carve_continuation(Carver& memory, const Mirror& mirror)
{
    return {memory.take<double>(mirror.view().positions), rows::take_selection_space(memory)};
}

// Queries of a launch, at most `most`. A launch takes as long as its last wave of blocks, so waves are full but for the
// last launch's, which is short: while its answers are handed out, the device has nothing to do.
std::uint32_t queries_of_launch(const Mirror& mirror, const ProposePlan& plan, std::size_t count, std::size_t most)
{
    const std::size_t launches = (count + most - 1) / most;
    const std::size_t even = (count + launches - 1) / launches;
    if (launches == 1) return static_cast<std::uint32_t>(even);
    const std::size_t wave = mirror.context().multiprocessors() * resident_blocks(plan);
    return static_cast<std::uint32_t>(even < wave ? even : even / wave * wave);
}

// The most queries of a launch.
std::size_t queries_in_time(const Mirror& mirror, const ProposePlan& plan)
{
    const double ranks = plan.shape.ranks;
    const double cycles = query_cycles + pair_cycles * ranks * ranks +
                          candidate_cycles * plan.shape.groups * static_cast<double>(plan.candidates);
    double queries = mirror.context().multiprocessors() * launch_cycles / cycles;
    const std::size_t bus = mirror.remote_row_bytes() * plan.wanted;
    if (bus > 0) queries = std::min(queries, static_cast<double>(launch_bus_bytes / bus));
    return std::max<std::size_t>(1, static_cast<std::size_t>(queries));
}

// Plans the launches of a request, with so many blocks a query and at most `most` proposals. Returns false where a
// block has no room for them.
bool plan_blocks(const Mirror& mirror, const SearchRequest& request, std::size_t most, std::uint32_t blocks,
                 ProposePlan& plan)
{
    const MirrorView& view = mirror.view();
    const auto rows = static_cast<double>(mirror.rows());
    const double live = std::max(1 - request.dead_share, 1.0 / rows);
    const double candidates = std::min(static_cast<double>(request.plan.candidates) / live, rows);
    // Scores of line codes are the values of rows that have no vectors, but for rounding.
    const std::size_t ranked = view.values_of_codes() && request.ranks
                                   ? std::min(request.plan.ranked, request.k + 6 + request.k / 32)
                                   : request.plan.ranked;
    const std::size_t shared_bytes = mirror.context().shared_bytes_per_block();
    return plan_proposals(view.tree, view.lists.slots, mirror.rows(), request.plan.width,
                          static_cast<std::size_t>(candidates), std::min(ranked, most), blocks, !request.ranks,
                          shared_bytes, plan) &&
           (!request.ranks || rank_shared_bytes(view, plan) <= shared_bytes);
}

}  // namespace

bool has_room(const Mirror& mirror, const SearchRequest& request)
{
    ProposePlan plan;
    return plan_blocks(mirror, request, most_proposed, 1, plan);
}

DevicePlan plan_chunk(const Mirror& mirror, const SearchRequest& request, std::size_t count, std::size_t room)
{
    DevicePlan plan;
    std::size_t most = most_proposed;
    // Blocks that share a query take larger tiles, and the block that ranks has the proposals of all of them.
    for (std::uint32_t blocks = blocks_for(mirror, count); !plan_blocks(mirror, request, most, blocks, plan.propose);) {
        if (blocks > 1) {
            blocks /= 2;
        } else if (!request.ranks && most > 1) {
            most /= 2;
        } else {
            throw std::bad_alloc();
        }
    }
    plan.ranks = request.ranks;
    plan.k = request.ranks ? static_cast<std::uint32_t>(request.k) : plan.propose.wanted;
    plan.step = queries_of_launch(mirror, plan.propose, count, queries_in_time(mirror, plan.propose));
    std::size_t queries = std::min(count, most_queries);
    const auto bytes_for = [&](std::size_t width) {
        plan.count = static_cast<std::uint32_t>(width);
        plan.reads_in_place = width * mirror.dimensions() <= most_read_in_place;
        plan.workspace = carved_bytes([&](Carver& memory) { carve(memory, mirror, plan); });
        return plan.workspace + width * mirror.dimensions() * sizeof(float);
    };
    while (bytes_for(queries) > room / 4 * 3 && queries > 1) queries = (queries + 1) / 2;
    if (plan.count <= few_queries && plan.ranks) plan.watched = watched;
    return plan;
}

void enqueue_chunk(const Mirror& mirror, const DevicePlan& plan, const Chunk& chunk, const std::uint32_t* dead)
{
    Carver carver(chunk.workspace);
    const Proposals all = carve(carver, mirror, plan);
    const float* queries = plan.reads_in_place ? all.queries : chunk.queries;
    for (std::uint32_t first = 0, i = 0; first < plan.count; first += plan.step, ++i) {
        const std::uint32_t count = std::min(plan.step, plan.count - first);
        const std::size_t begin = first * mirror.dimensions();
        const Proposals proposals = all.from(first, plan.propose, mirror.dimensions());
        const Answers answers = chunk.answers.from(first, plan.k);
        propose(mirror.view(), chunk.queries + begin, count, plan.propose, dead, proposals, chunk.stream);
        if (plan.ranks) {
            rank_proposals(mirror.view(), queries + begin, count, proposals, plan.propose, plan.k,
                           plan.watched.count() > 0, answers, chunk.stream);
        } else {
            answer_proposals(mirror.view(), count, proposals, plan.propose.wanted, answers, chunk.stream);
        }
        chunk.end_step(i);
    }
}

std::size_t continuation_bytes(const Mirror& mirror)
{
    return carved_bytes([&](Carver& memory) { carve_continuation(memory, mirror); });
}

void enqueue_continuation(const Mirror& mirror, const ChunkPlan& plan, const Chunk& chunk, const rows::RowCursor& after,
                          const std::uint32_t* dead)
{
    Carver carver(chunk.workspace);
    const Continuation space = carve_continuation(carver, mirror);
    const MirrorView& view = mirror.view();
    rows::value_in_steps(view.positions, mirror.remote_row_bytes(), [&](std::uint32_t first, std::uint32_t count) {
        all_values(view, chunk.queries, first, count, space.values + first, chunk.stream);
    });
    rows::first_after({space.values, view.row_at, dead, view.positions}, after, plan.k, space.selection, chunk.answers,
                      chunk.stream);
}

}  // namespace pgwarp::cuda::pqtree
