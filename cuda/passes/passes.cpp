#include "passes/passes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "device/error.h"
#include "passes/thresholds.h"

namespace pgwarp::cuda
{

namespace
{

// The rank, among the known positions, of a threshold that lets `keep` rows pass once `growth` times as many positions
// are known. Positions are in random order, so the rank scatters by its square root; three times that is added. A query
// for which too few rows pass fails its proof, which is rare.
std::uint32_t rank_for(const Plan& plan, double growth)
{
    const double share = plan.keep / growth;
    return std::min(plan.keep, static_cast<std::uint32_t>(std::ceil(share + 3 * std::sqrt(share) + 2)) + plan.spare);
}

// The end of the range that follows the one ending at `known`. A short rest joins the range.
std::uint32_t next_end(std::uint32_t known, std::uint32_t positions, const Plan& plan)
{
    const std::uint64_t wanted = std::uint64_t{known} * plan.growth;
    return wanted * 4 / 3 >= positions ? positions : static_cast<std::uint32_t>(wanted);
}

// The number of proposals from each best_group positions: more than any group is likely to hold of the final answer, as
// positions are in random order.
std::uint32_t best_of_group(std::uint32_t keep, std::uint32_t groups)
{
    constexpr std::uint32_t ranked_in_no_time = 512;
    const double expected = double{1} * keep / groups;
    const auto enough = static_cast<std::uint32_t>(std::ceil(expected + 5 * std::sqrt(expected) + 4));
    return std::min(best_group, std::max(enough, ranked_in_no_time / groups));
}

}  // namespace

Plan make_plan(const Context& context, const ExactRows& rows, std::uint32_t k, std::uint32_t queries)
{
    constexpr std::uint32_t largest_sample = maxima_group * 4096;
    constexpr std::uint32_t most_groups = 512;  // all blocks are resident at once
    const std::uint32_t positions = rows.scored.padded_positions;
    const std::uint32_t most = largest_capacity(context);
    Plan plan;
    plan.keep = k + k / 4 + 8;
    const std::uint32_t groups = (positions + best_group - 1) / best_group;
    if (queries <= streamed_queries && groups <= most_groups) {
        const std::uint32_t best = best_of_group(plan.keep, groups);
        plan.capacity = std::bit_ceil(std::max(512U, groups * best));
        if (plan.capacity <= most) {
            plan.best = best;
            return plan;
        }
    }
    plan.growth = queries <= few_queries ? 32 : k <= 32 ? 16 : 8;
    plan.spare = queries <= few_queries ? 2 : 0;
    const std::uint32_t rank = rank_for(plan, plan.growth);
    // With such a sample, few of its best rows share a group, so the groups' maxima estimate the ranks.
    plan.sample = maxima_group * std::bit_ceil(16 * rank);
    if (queries <= few_queries) {
        plan.sample = std::max(plan.sample, std::min(largest_sample, std::bit_floor(positions / 24)));
    }
    // At least twice the expected number of rows that pass in a range.
    plan.capacity = std::clamp(std::bit_ceil((2 + plan.spare) * rank * plan.growth), 512U, most);
    const bool few_rows = positions <= 2048 || positions < 2 * plan.sample;
    if (positions <= most && few_rows) plan.capacity = most;
    plan.list_all = few_rows && rows.rows <= plan.capacity;
    plan.sample = plan.list_all ? 0 : std::min(plan.sample, std::bit_floor(positions / tile_rows) * tile_rows);
    return plan;
}

Slab::Slab(MemoryPool& pool, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity, std::uint32_t maxima,
           cudaStream_t stream)
{
    const auto laid_out = [&](Carver& memory) { lay_out(memory, rows, slots, capacity, maxima, false); };
    memory_ = DeviceArray<std::byte>(pool, carved_bytes(laid_out), "exact search workspace", stream);
    Carver memory(memory_.data());
    laid_out(memory);
}

Slab::Slab(Carver& memory, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity, std::uint32_t maxima,
           bool copies)
{
    lay_out(memory, rows, slots, capacity, maxima, copies);
}

void Slab::take(std::uint32_t count, std::uint32_t padded)
{
    queries.count = count;
    queries.padded = padded;
    queries.zeroed = counts;
    incomplete = counts + padded;
    left_out = incomplete + padded;
}

Proposals Slab::proposals(const Plan& plan) const
{
    Proposals made = proposals(plan.capacity);
    if (plan.best == 0) return made;
    made.left_out = left_out;
    made.best = plan.best;
    return made;
}

void Slab::lay_out(Carver& memory, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity,
                   std::uint32_t maxima_width, bool copies)
{
    if (rows.halves.size() > 0) queries.halves = memory.take<__half>(std::size_t{slots} * rows.padded_dimensions);
    if (copies) queries.copies = memory.take<float>(std::size_t{slots} * rows.dimensions);
    queries.floats = memory.take<const float*>(slots);
    queries.factors = memory.take<float>(slots);
    queries.bounds = memory.take<QueryBound>(slots);
    queries.usable = memory.take<std::uint32_t>(slots);
    entries = memory.take<Proposal>(std::size_t{slots} * capacity);
    counts = memory.take<std::uint32_t>(3 * std::size_t{slots});
    thresholds = memory.take<float>(slots);
    maxima = memory.take<float>(std::size_t{slots} * maxima_width);
}

void Passes::filter(const Slab& slab, const Proposals& out, PositionRange range) const
{
    if (cancel != nullptr) cancel->check();
    ProposalJob job;
    job.rows = &rows->scored;
    job.penalties = penalties;
    job.vectors = rows->vectors;
    job.queries = slab.queries;
    job.out = out;
    job.range = range;
    pgwarp::cuda::propose(*context, job, stream);
}

void Passes::propose(const Slab& slab, const Plan& plan) const
{
    const Proposals proposals = slab.proposals(plan);
    const std::uint32_t positions = rows->scored.padded_positions;
    if (plan.best > 0) return filter(slab, proposals, {0, positions});
    if (plan.list_all) {
        open_thresholds(slab.queries, slab.thresholds, stream);
        return filter(slab, proposals, {0, positions});
    }
    const std::uint32_t groups = plan.sample / maxima_group;
    std::uint32_t known = plan.sample;
    std::uint32_t end = next_end(known, positions, plan);
    const std::uint32_t first_rank = rank_for(plan, double{1} * end / known);
    if (groups >= 2 * first_rank) {
        Proposals maxima = proposals;
        maxima.maxima = slab.maxima;
        maxima.maxima_width = groups;
        filter(slab, maxima, {0, plan.sample});
        thresholds_from_maxima(slab.queries, slab.maxima, groups, first_rank, slab.thresholds, stream);
    } else {
        // k is large and rows are few: the first range is as long as the capacity.
        open_thresholds(slab.queries, slab.thresholds, stream);
        end = plan.capacity / tile_rows * tile_rows;
    }
    for (std::uint32_t begin = 0;; begin = known) {
        filter(slab, proposals, {begin, end});
        known = end;
        if (known == positions) break;
        end = next_end(known, positions, plan);
        tighten_thresholds(slab.queries, proposals, rank_for(plan, double{1} * end / known), slab.thresholds,
                           slab.incomplete, stream);
    }
}

}  // namespace pgwarp::cuda
