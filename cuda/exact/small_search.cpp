#include "exact/small_search.h"

namespace pgwarp::cuda
{

namespace
{

Slab lay_out(Carver& memory, const ExactRows& rows, const SmallPlan& plan)
{
    const std::uint32_t maxima = plan.passes.sample / maxima_group;
    return {memory, rows.scored, plan.slots, plan.passes.capacity, maxima, plan.reads_in_place};
}

}  // namespace

bool serves_small(const ExactRows& rows, std::size_t count, std::uint32_t k)
{
    return count <= few_queries && k <= largest_ranked_k && rows.rows > 0;
}

SmallPlan plan_small_search(const Context& context, const ExactRows& rows, std::size_t count, std::uint32_t k)
{
    // Bytes of queries that kernels read in place, without a copy to the device.
    constexpr std::size_t read_in_place = std::size_t{32} << 10;
    SmallPlan plan;
    plan.count = static_cast<std::uint32_t>(count);
    plan.k = k;
    plan.passes = make_plan(context, rows, k, plan.count);
    // Streaming kernels read only the slots of queries, tile kernels all slots of a tile.
    plan.slots = count <= streamed_queries ? plan.count : tile_queries;
    plan.reads_in_place = count * rows.dimensions * sizeof(float) <= read_in_place;
    plan.watched = std::chrono::milliseconds(2);
    plan.workspace = carved_bytes([&](Carver& memory) { lay_out(memory, rows, plan); });
    return plan;
}

void enqueue_small_search(Context& context, const ExactRows& rows, const SmallPlan& plan, const Chunk& chunk,
                          const float* penalties)
{
    Carver memory(chunk.workspace);
    Slab slab = lay_out(memory, rows, plan);
    slab.take(plan.count, plan.slots);
    if (penalties == nullptr) penalties = rows.scored.penalties.data();
    prepare_queries(rows.scored, chunk.queries, nullptr, 0, slab.queries, chunk.stream);
    const Passes passes{&context, &rows, penalties, nullptr, chunk.stream};
    passes.propose(slab, plan.passes);
    RankJob job;
    job.rows = &rows.scored;
    job.vectors = rows.vectors;
    job.queries = slab.queries;
    job.proposals = slab.proposals(plan.passes);
    job.incomplete = slab.incomplete;
    job.answer = {chunk.answers.values, chunk.answers.rows, chunk.answers.found, plan.k};
    job.host_waits = true;
    rank_proposals(context, job, chunk.stream);
}

}  // namespace pgwarp::cuda
