#include "pqtree/propose.h"

#include <algorithm>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/shared_memory.h"
#include "pqtree/bins.cuh"
#include "pqtree/descent.cuh"
#include "pqtree/line_scan.cuh"
#include "pqtree/terms.cuh"
#include "select/shared_sort.cuh"

namespace pgwarp::cuda::pqtree
{

namespace
{

constexpr std::uint32_t most_inline = 256;  // dimensions
static_assert(sizeof(BlockState) + 64 <= fixed_bytes);

struct Job {
    const float* queries;
    float* copies;
    const std::uint32_t* dead;
    SelectKey* keys;
    std::uint32_t* counts;
    bool is_inline;  // a single query comes with the launch, sooner than it is read over the bus
    float query[most_inline];
};

// Copies a query to shared memory, padded, and to `copy` where that is not null.
template <int Threads>
__device__ void load_query(const TreeView& tree, const float* given, float* query, float* copy)
{
    for (std::uint32_t d = threadIdx.x; copy != nullptr && d < tree.dimensions; d += Threads) copy[d] = given[d];
    for (std::uint32_t part = 0; part < tree.parts; ++part) {
        const std::uint32_t width = tree.begin[part + 1] - tree.begin[part];
        for (std::uint32_t d = threadIdx.x; d < tree.padded[part + 1] - tree.padded[part]; d += Threads)
            query[tree.padded[part] + d] = d < width ? given[tree.begin[part] + d] : 0.0F;
    }
}

// The list of the combinations of two lists with the smallest sums, about `room` of them, in the place of both lists.
// room: a power of two.
template <int Threads>
__device__ RankedList combine(const BlockSpace& space, const RankedList& a, const RankedList& b, std::uint32_t leaves,
                              std::uint32_t room, float* scores, std::uint32_t* numbers, BlockState& state)
{
    std::uint32_t* visited = space.offsets;
    std::uint32_t* sums = visited + a.count;
    for (std::uint32_t i = threadIdx.x; i < a.count; i += Threads) visited[i] = 0;
    const float limit = detail::find_limit<Threads>(a, b, a.scores[0] + b.scores[0], room / 4 * 3, state);
    const detail::Shell shell = detail::open_shell<Threads>(a, b, limit, visited, sums, state);
    const std::uint32_t count = min(shell.pairs, room);
    for (std::uint32_t pair = threadIdx.x; pair < room; pair += Threads) {
        SelectKey key = padding_key;
        if (pair < count) {
            const std::uint32_t i = detail::entry_of(sums, a.count, pair);
            const std::uint32_t j = pair - sums[i];
            key = make_key(detail::within_range(a.scores[i] + b.scores[j]), a.numbers[i] * leaves + b.numbers[j]);
        }
        space.keys[pair] = key;
    }
    sort_keys(reinterpret_cast<std::uint64_t*>(space.keys), room);
    detail::unpack_keys<Threads>(space.keys, room, scores, numbers);
    return {scores, numbers, count};
}

// The two lists whose pairs are the bins.
struct BinPairs {
    RankedList a;
    RankedList b;
    std::uint64_t combinations;  // of b
};

template <int Threads>
__device__ BinPairs lists_of_parts(const TreeView& tree, const BlockSpace& space, const ProposePlan& plan,
                                   const RankedList& nothing, BlockState& state)
{
    const std::uint32_t ranks = plan.shape.ranks;
    const std::uint32_t leaves = tree.leaves();
    const auto part = [&](std::uint32_t number) {
        return RankedList{space.scores + number * ranks, space.leaves + number * ranks, plan.width * tree.k2};
    };
    const auto both = [&](std::uint32_t number) {
        return combine<Threads>(space, part(number), part(number + 1), leaves, 2 * ranks, space.scores + number * ranks,
                                space.leaves + number * ranks, state);
    };
    if (tree.parts == 1) return {part(0), nothing, 1};
    if (tree.parts == 2) return {part(0), part(1), leaves};
    if (tree.parts == 3) return {both(0), part(2), leaves};
    return {both(0), both(2), std::uint64_t{leaves} * leaves};
}

// Writes the best keys in order. Where bins are hashed a row may occur twice, side by side.
template <int Threads>
__device__ std::uint32_t write_ordered(const BlockSpace& space, std::uint32_t kept, std::uint32_t wanted, bool repeats,
                                       SelectKey* out, BlockState& state)
{
    const std::uint32_t size = power_of_two_above(max(kept, 2U));
    for (std::uint32_t i = kept + threadIdx.x; i < size; i += Threads) space.keys[i] = padding_key;
    sort_keys(reinterpret_cast<std::uint64_t*>(space.keys), size);
    std::uint32_t written = 0;
    for (std::uint32_t base = 0; base < kept; base += Threads) {
        const std::uint32_t i = base + threadIdx.x;
        const bool fresh = i < kept && (!repeats || i == 0 || space.keys[i] != space.keys[i - 1]);
        std::uint32_t total;
        const std::uint32_t place = written + sum_before<Threads>(fresh ? 1 : 0, state, total);
        if (fresh && place < wanted) out[place] = space.keys[i];
        written += total;
    }
    return min(written, wanted);
}

template <int Threads>
__device__ void write_keys(const BlockSpace& space, const ProposePlan& plan, bool repeats, const Job& job,
                           BlockState& state)
{
    const std::uint32_t kept = state.kept;
    SelectKey* out = job.keys + std::size_t{blockIdx.x} * plan.stride();
    std::uint32_t written = kept;
    if (plan.ordered) {
        written = write_ordered<Threads>(space, kept, plan.wanted, repeats, out, state);
    } else {
        for (std::uint32_t i = threadIdx.x; i < kept; i += Threads) out[i] = space.keys[i];
    }
    if (threadIdx.x == 0) job.counts[blockIdx.x] = written;
}

template <int Threads>
__global__ __launch_bounds__(Threads, 1024 / Threads) void propose_kernel(MirrorView mirror, ProposePlan plan,
                                                                          const __grid_constant__ Job job)
{
    extern __shared__ uint4 memory[];
    __shared__ BlockState state;
    __shared__ float no_score;
    __shared__ std::uint32_t no_number;
    const BlockSpace space(reinterpret_cast<std::byte*>(memory), plan.layout);
    const TreeView& tree = mirror.tree;
    const std::uint32_t query = blockIdx.x / plan.blocks;
    const detail::BinShare share{blockIdx.x % plan.blocks, plan.blocks};
    let_next_start();
    if (threadIdx.x == 0) {
        state.kept = 0;
        state.limit = FLT_MAX;
        no_score = 0;
        no_number = 0;
    }
    const std::size_t first = std::size_t{query} * tree.dimensions;
    load_query<Threads>(tree, job.is_inline ? job.query : job.queries + first, space.query,
                        job.copies == nullptr || share.own > 0 ? nullptr : job.copies + first);
    const TermScale scale = make_terms<Threads>(tree, space, plan.layout.line_scores);
    rank_leaves<Threads>(tree, space, plan.width, plan.shape.ranks);
    const BinPairs lists = lists_of_parts<Threads>(tree, space, plan, {&no_score, &no_number, 1}, state);
    const std::uint32_t tile = plan.shape.tile;
    const LineRanking ranking{scale, plan.wanted, keys_of(plan.wanted, tile), tile, job.dead};
    visit_bins<Threads>(mirror, space, lists.a, lists.b, lists.combinations, plan.candidates, plan.first_pairs,
                        plan.shape.bins, share, state, [&](std::uint32_t listed, std::uint32_t rows) {
                            scan_bins<Threads>(mirror, space, ranking, listed, rows, state);
                        });
    // Where bins are hashed, a row may be among the keys twice, and is written once.
    const bool repeats = mirror.lists.slots.hashed;
    select_keys<Threads>(space, ranking, repeats ? kept_of(plan.wanted) : plan.stride(), state);
    write_keys<Threads>(space, plan, repeats, job, state);
}

template <int Threads>
void launch(const MirrorView& mirror, std::uint32_t count, const ProposePlan& plan, const Job& job, cudaStream_t stream)
{
    allow_shared_memory(propose_kernel<Threads>);
    propose_kernel<Threads><<<count * plan.blocks, Threads, plan.layout.bytes, stream>>>(mirror, plan, job);
    check_launch("proposing rows");
}

}  // namespace

bool plan_proposals(const TreeView& tree, const BinSlots& slots, std::uint64_t rows, std::size_t width,
                    std::size_t candidates, std::size_t wanted, std::uint32_t blocks, bool ordered,
                    std::size_t shared_bytes, ProposePlan& plan)
{
    constexpr std::uint32_t fewest_ranks = 8;
    constexpr std::uint32_t fewest_bins = 512;
    constexpr double crowding = 2.5;  // rows of the bins near a query, over those of an average bin
    plan.width = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(width, 1, std::min<std::size_t>(tree.k1, std::max(1U, most_ranks / tree.k2))));
    plan.candidates = static_cast<std::uint32_t>(std::min<std::uint64_t>(candidates, rows));
    plan.wanted = static_cast<std::uint32_t>(wanted);
    plan.ordered = ordered || slots.hashed;
    plan.blocks = plan.ordered ? 1 : blocks;
    plan.shared_bytes = shared_bytes;
    const double per_bin = std::max(1.0, crowding * static_cast<double>(rows) / static_cast<double>(slots.slots));
    const auto bins = static_cast<std::uint32_t>(
        std::min<double>(1.2 * static_cast<double>(plan.candidates) / per_bin, most_bins / 5 * 4));
    plan.first_pairs = std::max(32U, bins);
    plan.shape.parts = tree.parts;
    plan.shape.groups = code_groups(tree.line_parts);
    plan.shape.padded_query = tree.padded_query;
    plan.shape.padded_level1 = tree.padded_level1;
    // Only the combinations of lists are sorted by powers of two.
    const std::uint32_t leaves = plan.width * tree.k2;
    plan.shape.ranks = std::max(fewest_ranks, tree.parts > 2 ? power_of_two_above(leaves) : (leaves + 7) / 8 * 8);
    plan.shape.tile = plan.blocks > 1 ? shared_tile_rows : tile_rows;
    plan.shape.bins = std::clamp((plan.first_pairs / 4 * 5 + 63) / 64 * 64, fewest_bins, most_bins);
    plan.shape.proposed = plan.wanted;
    plan.layout = BlockLayout::of(plan.shape);
    return plan.layout.bytes + fixed_bytes <= shared_bytes;
}

std::size_t resident_blocks(const ProposePlan& plan)
{
    int blocks = 0;
    allow_shared_memory(propose_kernel<batch_threads>);
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, propose_kernel<batch_threads>, batch_threads,
                                                        plan.layout.bytes),
          "asking for a kernel");
    return static_cast<std::size_t>(std::max(1, blocks));
}

void propose(const MirrorView& mirror, const float* queries, std::uint32_t count, const ProposePlan& plan,
             const std::uint32_t* dead, const Proposals& out, cudaStream_t stream)
{
    constexpr std::uint32_t few = 132;  // a multiprocessor each, or more
    if (count == 0) return;
    Job job{queries, out.queries, dead, out.keys, out.counts, false, {}};
    job.is_inline = count == 1 && out.queries != nullptr && mirror.dimensions <= most_inline;
    if (job.is_inline) std::copy_n(queries, mirror.dimensions, job.query);
    if (count * plan.blocks <= few) {
        launch<single_threads>(mirror, count, plan, job, stream);
    } else {
        launch<batch_threads>(mirror, count, plan, job, stream);
    }
}

}  // namespace pgwarp::cuda::pqtree
