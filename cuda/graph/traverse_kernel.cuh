// The common parts of the traversal kernels: a query is staged in shared memory, traversed, and its answer written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/chained_launch.cuh"
#include "graph/cluster_blocks.cuh"
#include "graph/rank_rows.cuh"
#include "graph/row_scores.cuh"
#include "graph/shared_memory.cuh"
#include "graph/traversal.h"
#include "graph/traverse_job.h"

namespace pgwarp::cuda::graph
{

// A TraverseJob as kernels take it.
struct TraverseArguments {
    GraphView view;
    LaunchConfig shape;
    SharedLayout layout;
    const float* queries;  // as given for bytes and floats, moved for halves
    float* query_copy;
    const std::uint32_t* query_bits;
    const std::uint32_t* starts;  // null: all seeds are compared
    bool repeated_starts;
    const std::uint32_t* dead;
    rows::FilterView filters;
    bool beside;  // the launch before is of the same batch, so its blocks need not be waited for
    std::uint32_t count;
    std::uint32_t* rows;
    std::uint32_t* found;
    RankQueries rank;
    std::uint32_t k;
    Answers answers;
    TraversalCounts* work;
};

// A query in the parameters of the kernel.
struct GivenQuery {
    static constexpr std::uint32_t most = 512;
    std::uint32_t dimensions = 0;  // 0: there is no query
    float values[most];
};
static_assert(sizeof(TraverseArguments) + sizeof(GivenQuery) <= 4096, "what a launch may bring");

inline TraverseArguments arguments_of(const TraverseJob& job, std::uint32_t first, std::uint32_t count)
{
    const GraphView& view = *job.view;
    TraverseArguments arguments{};
    arguments.view = view;
    arguments.shape = job.shape;
    arguments.layout = job.shape.layout();
    if (job.queries != nullptr) arguments.queries = job.queries + std::size_t{first} * view.vectors.dimensions;
    if (job.query_copy != nullptr) {
        arguments.query_copy = job.query_copy + std::size_t{first} * view.vectors.dimensions;
    }
    if (job.query_bits != nullptr) arguments.query_bits = job.query_bits + std::size_t{first} * view.bits.words;
    if (job.shape.offered > 0) arguments.starts = job.starts + std::size_t{first} * job.shape.offered;
    arguments.repeated_starts = job.repeated_starts;
    arguments.dead = job.dead;
    arguments.filters = job.filters.from(first);
    arguments.beside = first > 0;
    arguments.count = count;
    arguments.rows = job.rows + std::size_t{first} * job.shape.wanted;
    arguments.found = job.found + first;
    arguments.rank = job.rank.from(view, first);
    arguments.k = job.k;
    if (job.shape.ranks) arguments.answers = job.answers.from(first, job.k);
    if (job.work != nullptr) arguments.work = job.work + first;
    return arguments;
}

inline ScoreKind score_kind(const GraphView& view)
{
    switch (view.form) {
        case TraversalForm::bits:
            return ScoreKind::bits;
        case TraversalForm::bytes:
            return ScoreKind::bytes;
        case TraversalForm::floats:
            return ScoreKind::floats;
        case TraversalForm::halves:
            break;
    }
    return view.metric == Metric::l1 ? ScoreKind::l1 : ScoreKind::dot;
}

// Calls launch.template operator()<kind>() for the kind of scores of a view.
template <class Launch>
void with_score_kind(const GraphView& view, const Launch& launch)
{
    switch (score_kind(view)) {
        case ScoreKind::dot:
            return launch.template operator()<ScoreKind::dot>();
        case ScoreKind::l1:
            return launch.template operator()<ScoreKind::l1>();
        case ScoreKind::bytes:
            return launch.template operator()<ScoreKind::bytes>();
        case ScoreKind::floats:
            return launch.template operator()<ScoreKind::floats>();
        case ScoreKind::bits:
            return launch.template operator()<ScoreKind::bits>();
    }
}

#ifdef __CUDACC__

// Writes a query as bytes, as ByteQuery::assign() does on the CPU: the largest element becomes 127.
template <class Group>
__device__ inline void stage_bytes(const Group& group, const GraphView& view, const float* from, StagedBytes* out)
{
    const float* mean = view.bytes.mean;
    const auto moved = [&](std::uint32_t d) { return mean != nullptr ? from[d] - __ldg(mean + d) : from[d]; };
    if (group.rank() == 0) out->largest = 0;
    group.sync();
    float largest = 0;
    for (std::uint32_t d = group.rank(); d < view.vectors.dimensions; d += group.size()) {
        largest = fmaxf(largest, fabsf(moved(d)));
    }
    for (std::uint32_t step = group.warp_size() / 2; step > 0; step /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(group.warp_mask(), largest, static_cast<int>(step)));
    }
    if (group.rank() % 32 == 0) atomicMax(&out->largest, __float_as_uint(largest));
    group.sync();
    const float reach = __uint_as_float(out->largest);
    const float step = fminf(__fdiv_rn(fmaxf(reach, 1e-30F), 127.0F), 3.402823466e38F / 128);
    const float inverse = __fdiv_rn(1.0F, step);
    auto* bytes = reinterpret_cast<signed char*>(out->pieces);
    for (std::uint32_t d = group.rank(); d < view.bytes.stride; d += group.size()) {
        const float value = d < view.vectors.dimensions ? __fmul_rn(moved(d), inverse) : 0.0F;
        bytes[d] = static_cast<signed char>(__float2int_rn(fminf(fmaxf(value, -127.0F), 127.0F)));
    }
    if (group.rank() == 0) out->step = step;
}

// Copies a query from host memory, or from the kernel's parameters, to device memory, where it is read several times.
// Called first, as the read may take long and other work overlaps with it. The caller adds a barrier.
template <class Group>
__device__ inline void bring_query(const Group& group, const TraverseArguments& arguments, std::uint32_t query,
                                   const GivenQuery* given)
{
    if (arguments.query_copy == nullptr) return;
    const std::uint32_t dimensions = arguments.view.vectors.dimensions;
    const std::size_t begin = static_cast<std::size_t>(query) * dimensions;
    const bool is_given = given != nullptr && given->dimensions > 0;
    for (std::uint32_t d = group.rank(); d < dimensions; d += group.size()) {
        arguments.query_copy[begin + d] = is_given ? given->values[d] : arguments.queries[begin + d];
    }
}

// Stages the query in shared memory. Called after bring_query() and a barrier. The caller adds a barrier; the traversal
// starts with one.
template <class Group>
__device__ inline void stage_query(const Group& group, const TraverseArguments& arguments, std::uint32_t query,
                                   unsigned char* to)
{
    const GraphView& view = arguments.view;
    if (view.form == TraversalForm::bits) {
        const std::uint32_t* from = arguments.query_bits + static_cast<std::size_t>(query) * view.bits.words;
        auto* out = reinterpret_cast<std::uint32_t*>(to);
        for (std::uint32_t i = group.rank(); i < view.bits.words; i += group.size()) out[i] = from[i];
        return;
    }
    const std::uint32_t dimensions = view.vectors.dimensions;
    const float* from = (arguments.query_copy != nullptr ? arguments.query_copy : arguments.queries) +
                        static_cast<std::size_t>(query) * dimensions;
    auto* out = reinterpret_cast<float*>(to);
    if (view.form == TraversalForm::bytes) return stage_bytes(group, view, from, reinterpret_cast<StagedBytes*>(to));
    if (view.form == TraversalForm::floats) {
        for (std::uint32_t d = group.rank(); d < dimensions; d += group.size()) out[d] = from[d];
        return;
    }
    for (std::uint32_t d = group.rank(); d < view.vectors.stride; d += group.size()) {
        out[staged_place(d, view.vectors.stride / 8)] = d < dimensions ? from[d] : 0.0F;
    }
}

template <ScoreKind kind, class Group>
__device__ inline auto scores_of(const Group& group, const LogicalWarps& logical_warps,
                                 const TraverseArguments& arguments, const unsigned char* query)
{
    const GraphView& view = arguments.view;
    if constexpr (kind == ScoreKind::bits) {
        return BitScores<Group>{group, view.bits.rows, view.bits.words, reinterpret_cast<const std::uint32_t*>(query)};
    } else if constexpr (kind == ScoreKind::bytes) {
        const float factor = view.vectors.metric == Metric::l2 ? -2.0F : -1.0F;
        return ByteScores<Group>{group,
                                 logical_warps,
                                 view.bytes,
                                 view.bytes.stride / 16,
                                 factor,
                                 view.vectors.full,
                                 view.vectors.dimensions,
                                 reinterpret_cast<const StagedBytes*>(query)};
    } else if constexpr (kind == ScoreKind::floats) {
        return FloatScores<Group>{group,
                                  logical_warps,
                                  view.vectors.full,
                                  view.vectors.dimensions,
                                  view.vectors.metric == Metric::l2,
                                  reinterpret_cast<const float*>(query)};
    } else {
        const std::uint32_t pieces = view.vectors.stride / 8;
        const auto* staged = reinterpret_cast<const float4*>(query);
        const bool squared = view.vectors.metric == Metric::l2;
        const float* terms = squared && kind == ScoreKind::dot ? view.vectors.row_terms : nullptr;
        return HalfScores<Group, kind>{group,  logical_warps,         view.vectors.half.rows,   terms,
                                       pieces, squared ? 2.0F : 1.0F, {staged, staged + pieces}};
    }
}

__device__ inline TraversalStarts starts_of(const TraverseArguments& arguments, std::uint32_t query)
{
    const LaunchConfig& shape = arguments.shape;
    const std::uint32_t* seeds = arguments.view.seed_rows;
    if (arguments.starts == nullptr) return {seeds, shape.seeds, shape.starts, seeds[0], false, true};
    return {arguments.starts + static_cast<std::size_t>(query) * shape.offered,
            shape.offered,
            shape.starts,
            seeds[0],
            arguments.repeated_starts,
            false};
}

// Writes the first rows of the queue that live and pass to `rows` and returns their number. Called by the first warp.
template <class Group>
__device__ inline std::uint32_t choose_found(const Group& group, const TraverseArguments& arguments,
                                             const Entry* entries, std::uint32_t query, const TraversalCounts& work,
                                             std::uint32_t* rows)
{
    const auto lives = [&](std::uint32_t i) {
        const std::uint32_t row = row_of(entries[i]);
        return entries[i] != no_entry &&
               (arguments.dead == nullptr || ((arguments.dead[row / 32] >> row % 32) & 1U) == 0) &&
               arguments.filters.passes(query, row);
    };
    const LaunchConfig& shape = arguments.shape;
    const std::uint32_t found = group.first_matches(0, shape.chosen, shape.wanted, lives, rows);
    if (group.rank() == 0 && arguments.work != nullptr) arguments.work[query] = work;
    for (std::uint32_t i = group.rank(); i < found; i += group.warp_size()) rows[i] = row_of(entries[rows[i]]);
    return found;
}

template <class Group>
__device__ inline void write_found(const Group& group, const TraverseArguments& arguments, const Entry* entries,
                                   std::uint32_t query, const TraversalCounts& work)
{
    if (group.warp() != 0) return;
    std::uint32_t* rows = arguments.rows + static_cast<std::size_t>(query) * arguments.shape.wanted;
    const std::uint32_t found = choose_found(group, arguments, entries, query, work, rows);
    if (group.rank() == 0) arguments.found[query] = found;
}

// Ranks the rows found by the block that found them. The queue's memory is reused.
template <class Group>
__device__ inline void rank_in_place(const Group& group, const TraverseArguments& arguments, const SharedMemory& memory,
                                     const Entry* entries, std::uint32_t query, const TraversalCounts& work)
{
    std::uint32_t* numbers = memory.rows();
    auto* values = reinterpret_cast<std::uint64_t*>(memory.kept());
    std::uint32_t* found = memory.counters() + located_counter;
    if (group.warp() == 0) {
        const std::uint32_t chosen = choose_found(group, arguments, entries, query, work, numbers);
        if (group.rank() == 0) *found = chosen;
    }
    group.sync();
    const auto kept = static_cast<int>(*found);
    value_rows(arguments.view, arguments.rank, query, kept, numbers, values);
    emit_counted(kept, values, numbers, query, arguments.k, arguments.answers);
    report_found(kept, query, arguments.answers);
}

// One query by one group of threads. wide: as in Traversal. given: the query in the kernel's parameters, or null.
template <ScoreKind kind, template <class> class Visited, bool wide = true, class Group>
__device__ inline void traverse_query(const TraverseArguments& arguments, const Group& group, unsigned char* shared,
                                      std::uint32_t query, const GivenQuery* given = nullptr)
{
    const LaunchConfig& shape = arguments.shape;
    const SharedMemory memory(shared, arguments.layout);
    bring_query(group, arguments, query, given);
    Visited<Group> visited(group, reinterpret_cast<std::uint32_t*>(shared + arguments.layout.visited),
                           shape.visited_bits);
    visited.clear();
    group.sync();
    stage_query(group, arguments, query, shared + arguments.layout.query);
    const auto scores =
        scores_of<kind>(group, logical_warps_of(group, shape.logical_warp), arguments, shared + arguments.layout.query);
    Traversal<Group, SharedMemory, Visited<Group>, decltype(scores), wide> traversal(
        group, shape.traversal, memory, visited, scores, arguments.view.neighbours);
    const TraversalStarts starts = starts_of(arguments, query);
    if constexpr (Group::exclusive) {
        const ClusterBlocks block_cluster(shape.cluster, wide && shape.shares_scores, shared, arguments.layout);
        traversal.run(starts, block_cluster);
        if (block_cluster.own() > 0) return;
        const TraversalCounts work = traversal.counts();
        if (shape.ranks) {
            rank_in_place(group, arguments, memory, traversal.found(), query, work);
        } else {
            write_found(group, arguments, traversal.found(), query, work);
        }
        if (wide && shape.shares_scores) block_cluster.wait();
        return;
    }
    traversal.run(starts);
    write_found(group, arguments, traversal.found(), query, traversal.counts());
}

#endif

}  // namespace pgwarp::cuda::graph
