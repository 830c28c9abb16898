#include "matchcount/sparse_session.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "device/error.h"
#include "device/wait.h"
#include "matchcount/sparse_gather.h"
#include "passes/rank.h"
#include "passes/thresholds.h"

namespace pgwarp::cuda
{

using matchcount::ListItem;
using matchcount::SparseElement;
using matchcount::SparseQueryBound;
using matchcount::SparseSlots;

namespace
{

constexpr std::uint32_t again_slots = tile_queries;  // queries of a second search that are searched together
constexpr std::uint32_t read_together = 64;          // queries whose slots tiles read together
constexpr std::uint32_t most_queries = 16384;        // of a chunk
constexpr std::size_t most_elements_of_chunk = std::size_t{1} << 24;
constexpr std::size_t most_chunk_bytes = std::size_t{2} << 30;  // unless it has one query

// The rank of a threshold, among the known positions, that lets `keep` rows pass once `growth` times as many are known
// (passes/passes.cpp).
std::uint32_t rank_for(std::uint32_t keep, double growth)
{
    const double share = keep / growth;
    return std::min(keep, static_cast<std::uint32_t>(std::ceil(share + 3 * std::sqrt(share) + 2)));
}

std::uint32_t next_end(std::uint32_t known, std::uint32_t positions, std::uint32_t growth)
{
    const std::uint64_t wanted = std::uint64_t{known} * growth;
    return wanted * 4 / 3 >= positions ? positions : static_cast<std::uint32_t>(wanted);
}

}  // namespace

// The queries as they are sent; the same in page-locked memory and on the device.
struct SparseSession::Sent {
    SparseSlots slots;
    SparseQueryBound* bounds = nullptr;  // [count]
    double* squares = nullptr;           // [count]
    std::uint32_t* offsets = nullptr;    // [count + 1], of elements
    SparseElement* elements = nullptr;
    ListItem* items = nullptr;  // the last: what no query has is not sent
};

// Slots of queries and what they propose.
struct SparseSession::Slab {
    SparseSlots slots;
    std::uint32_t count = 0;  // queries
    std::uint32_t padded = 0;
    const ListItem* items = nullptr;
    Proposal* entries = nullptr;
    std::uint32_t capacity = 0;
    std::uint32_t* counts = nullptr;  // [2][padded]: of entries, and whether entries were lost
    float* thresholds = nullptr;
    float* maxima = nullptr;
    std::uint8_t* bytes = nullptr;  // [padded][chunk]
    std::uint32_t chunk = 0;

    PreparedQueries queries() const
    {
        PreparedQueries prepared;
        prepared.count = count;
        prepared.padded = padded;
        prepared.halves = slots.halves;
        prepared.factors = slots.factors;
        prepared.usable = slots.usable;
        return prepared;
    }
    std::uint32_t* incomplete() const { return counts + padded; }
    Proposals proposals() const { return {entries, counts, thresholds, capacity, nullptr, 0, nullptr, 0}; }
};

struct SparseSession::Workspace {
    Sent sent;
    Slab slab;
    Slab again;
    std::uint32_t* unproven = nullptr;  // [1 + count]: their number, their ids
    float* thresholds = nullptr;        // [count], of these
};

SparseSession::SparseSession(Context& context, const SparseMirror& mirror, const SparseSearchTuning& tuning,
                             const SearchBatch& batch, const Round& round, const Tombstones* dead)
    : context_(context),
      mirror_(mirror),
      tuning_(tuning),
      batch_(batch),
      round_(round),
      penalties_(dead != nullptr ? dead->form_as<float>() : mirror.scored().penalties.data())
{
}

SparseView SparseSession::query(const SparsePlan& plan, std::size_t i) const
{
    const std::uint32_t number = round_.number(plan.first + i);
    const std::span<const std::uint32_t> words = batch_.lists.list(number);
    return {words.data(), batch_.lists.list_weights(number).data(), words.size()};
}

// Chooses how the positions are gone over.
void SparseSession::shape(SparsePlan& plan) const
{
    const matchcount::SparseForm& form = mirror_.form();
    const std::uint32_t positions = form.padded_positions();
    const std::uint32_t most = largest_capacity(context_);
    plan.keep = tuning_.keep > 0 ? tuning_.keep : 2 * plan.k + 32;
    plan.growth = tuning_.growth;
    const std::uint32_t rank = rank_for(plan.keep, plan.growth);
    plan.sample = std::max(maxima_group * std::bit_ceil(16 * rank), form.slice());
    plan.capacity = std::clamp(std::bit_ceil(2 * rank * plan.growth), 512U, most);
    const bool few_rows = positions <= 2048 || positions < 2 * plan.sample;
    if (positions <= most && few_rows) plan.capacity = most;
    plan.list_all = few_rows && form.rows() <= plan.capacity;
    plan.sample = plan.list_all ? 0 : std::min(plan.sample, std::bit_floor(positions / tile_rows) * tile_rows);
    const std::uint64_t fitting = tuning_.chunk_bytes / plan.slots / form.slice() * form.slice();
    plan.chunk = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(fitting, form.slice(), std::uint64_t{form.slices()} * form.slice()));
}

SparsePlan SparseSession::plan(std::size_t first, std::size_t most, std::size_t room) const
{
    most = std::min<std::size_t>(most, most_queries);
    for (;;) {
        SparsePlan plan;
        plan.first = static_cast<std::uint32_t>(first);
        plan.k = std::min(batch_.k, mirror_.form().rows());
        while (plan.count < most) {
            const auto more = static_cast<std::uint32_t>(batch_.lists.list(round_.number(first + plan.count)).size());
            if (plan.count > 0 && plan.elements + more > most_elements_of_chunk) break;
            plan.elements += more;
            plan.most_elements = std::max(plan.most_elements, more);
            ++plan.count;
        }
        plan.slots = round_up(plan.count, tile_queries);
        shape(plan);
        plan.host_workspace = carved_bytes([&](Carver& memory) { (void)lay_out_sent(plan, memory); });
        plan.workspace = carved_bytes([&](Carver& memory) { (void)lay_out(plan, memory); });
        plan.answers_on_device = true;
        if (plan.count == 1 || plan.workspace <= std::min(most_chunk_bytes, room / 2)) return plan;
        most = (plan.count + 1) / 2;
    }
}

SparseSession::Sent SparseSession::lay_out_sent(const SparsePlan& plan, Carver& memory) const
{
    Sent sent;
    sent.slots.halves = memory.take<__half>(std::size_t{plan.slots} * mirror_.form().columns());
    sent.slots.factors = memory.take<float>(plan.slots);
    sent.slots.units = memory.take<float>(plan.slots);
    sent.slots.usable = memory.take<std::uint32_t>(plan.slots);
    sent.slots.item_begins = memory.take<std::uint32_t>(plan.slots);
    sent.slots.item_counts = memory.take<std::uint32_t>(plan.slots);
    sent.bounds = memory.take<SparseQueryBound>(plan.count);
    sent.squares = memory.take<double>(plan.count);
    sent.offsets = memory.take<std::uint32_t>(plan.count + std::size_t{1});
    sent.elements = memory.take<SparseElement>(plan.elements);
    sent.items = memory.take<ListItem>(plan.elements);
    return sent;
}

SparseSession::Slab SparseSession::lay_out_slab(Carver& memory, std::uint32_t slots, std::uint32_t capacity,
                                                std::uint32_t maxima, std::uint32_t chunk) const
{
    Slab slab;
    slab.padded = slots;
    slab.capacity = capacity;
    slab.chunk = chunk;
    slab.entries = memory.take<Proposal>(std::size_t{slots} * capacity);
    slab.counts = memory.take<std::uint32_t>(2 * std::size_t{slots});
    slab.thresholds = memory.take<float>(slots);
    slab.maxima = memory.take<float>(std::size_t{slots} * maxima);
    slab.bytes = memory.take<std::uint8_t>(mirror_.form().lists() > 0 ? std::size_t{slots} * chunk : 0);
    return slab;
}

SparseSession::Workspace SparseSession::lay_out(const SparsePlan& plan, Carver& memory) const
{
    Workspace workspace;
    workspace.sent = lay_out_sent(plan, memory);
    workspace.slab = lay_out_slab(memory, plan.slots, plan.capacity, plan.sample / maxima_group, plan.chunk);
    workspace.slab.slots = workspace.sent.slots;
    workspace.slab.count = plan.count;
    workspace.slab.items = workspace.sent.items;
    workspace.unproven = memory.take<std::uint32_t>(std::size_t{plan.count} + 1);
    workspace.thresholds = memory.take<float>(plan.count);
    workspace.again = lay_out_slab(memory, again_slots, largest_capacity(context_), 0, plan.chunk);
    SparseSlots& again = workspace.again.slots;
    again.halves = memory.take<__half>(std::size_t{again_slots} * mirror_.form().columns());
    again.factors = memory.take<float>(again_slots);
    again.units = memory.take<float>(again_slots);
    again.usable = memory.take<std::uint32_t>(again_slots);
    again.item_begins = memory.take<std::uint32_t>(again_slots);
    again.item_counts = memory.take<std::uint32_t>(again_slots);
    workspace.again.items = workspace.sent.items;
    return workspace;
}

// Returns the number of items.
std::uint32_t SparseSession::write_queries(const SparsePlan& plan, const Sent& sent, ThreadPool& pool) const
{
    sent.offsets[0] = 0;
    for (std::uint32_t i = 0; i < plan.count; ++i)
        sent.offsets[i + 1] = sent.offsets[i] + static_cast<std::uint32_t>(query(plan, i).count);
    std::atomic<std::uint32_t> items{0};
    pool.parallel_for(plan.slots, 64, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) write_slot(plan, sent, i, items);
    });
    return items;
}

void SparseSession::write_slot(const SparsePlan& plan, const Sent& sent, std::size_t i,
                               std::atomic<std::uint32_t>& items) const
{
    const matchcount::SparseForm& form = mirror_.form();
    std::array<ListItem, matchcount::most_query_elements> own_items;
    matchcount::SparseForm::Query written{};
    written.halves = reinterpret_cast<half_bits*>(sent.slots.halves) + i * form.columns();
    written.items = own_items.data();
    std::fill_n(written.halves, form.columns(), half_bits{0});
    if (i < plan.count) {
        const SparseView vector = query(plan, i);
        form.write_query(vector, written);
        sent.bounds[i] = written.bound;
        sent.squares[i] = written.square;
        for (std::size_t at = 0; at < vector.count; ++at)
            sent.elements[sent.offsets[i] + at] = {vector.indices[at], vector.values[at]};
    }
    if (!written.usable) written.item_count = 0;
    const std::uint32_t first = items.fetch_add(written.item_count, std::memory_order_relaxed);
    std::copy_n(own_items.data(), written.item_count, sent.items + first);
    sent.slots.item_begins[i] = first;
    sent.slots.item_counts[i] = written.item_count;
    sent.slots.factors[i] = written.usable ? written.factor : 0;
    sent.slots.units[i] = written.usable ? written.unit : 0;
    sent.slots.usable[i] = written.usable ? 1 : 0;
}

// Tiles also read the bytes of slots without a query, which no sums are written to.
void SparseSession::clear(const Slab& slab, cudaStream_t stream) const
{
    check(cudaMemsetAsync(slab.counts, 0, 2 * std::size_t{slab.padded} * sizeof(std::uint32_t), stream),
          "clearing counts");
    const std::uint32_t unused = round_up(slab.count, read_together) - slab.count;
    if (mirror_.form().lists() == 0 || unused == 0) return;
    check(
        cudaMemsetAsync(slab.bytes + std::size_t{slab.count} * slab.chunk, 0, std::size_t{unused} * slab.chunk, stream),
        "clearing sums");
}

// Goes over the range in chunks: first the bytes of their lists, then the products of the columns.
void SparseSession::filter(const Slab& slab, Proposals out, PositionRange range, cudaStream_t stream) const
{
    const matchcount::SparseListsView lists = mirror_.lists();
    const matchcount::SparseItems items{slab.count, slab.slots.item_begins, slab.slots.item_counts, slab.items};
    float* const maxima = out.maxima;
    for (std::uint32_t begin = range.begin; begin < range.end;) {
        batch_.check_cancel();
        const std::uint32_t aligned = begin / lists.slice * lists.slice;
        const std::uint32_t end =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(range.end, std::uint64_t{aligned} + slab.chunk));
        ProposalJob job;
        job.rows = &mirror_.scored();
        job.penalties = penalties_;
        job.queries = slab.queries();
        if (maxima != nullptr) out.maxima = maxima + (begin - range.begin) / maxima_group;
        job.out = out;
        job.range = {begin, end};
        if (lists.lists > 0) {
            sum_lists(lists, items, aligned / lists.slice, (end - aligned + lists.slice - 1) / lists.slice, slab.bytes,
                      slab.chunk, stream);
            job.added = {slab.bytes + (begin - aligned), slab.slots.units, slab.chunk};
        }
        pgwarp::cuda::propose(context_, job, stream);
        begin = end;
    }
}

void SparseSession::propose(const SparsePlan& plan, const Slab& slab, cudaStream_t stream) const
{
    const Proposals proposals = slab.proposals();
    const PreparedQueries queries = slab.queries();
    const std::uint32_t positions = mirror_.form().padded_positions();
    open_thresholds(queries, slab.thresholds, stream);
    if (plan.list_all) return filter(slab, proposals, {0, positions}, stream);
    const std::uint32_t groups = plan.sample / maxima_group;
    std::uint32_t known = plan.sample;
    std::uint32_t end = next_end(known, positions, plan.growth);
    const std::uint32_t first_rank = rank_for(plan.keep, double{1} * end / known);
    if (groups >= 2 * first_rank) {
        Proposals maxima = proposals;
        maxima.maxima = slab.maxima;
        maxima.maxima_width = groups;
        filter(slab, maxima, {0, plan.sample}, stream);
        thresholds_from_maxima(queries, slab.maxima, groups, first_rank, slab.thresholds, stream);
    } else {
        // k is large and rows are few: the first range is as long as the capacity.
        end = plan.capacity / tile_rows * tile_rows;
    }
    for (std::uint32_t begin = 0;; begin = known) {
        filter(slab, proposals, {begin, end}, stream);
        known = end;
        if (known == positions) break;
        end = next_end(known, positions, plan.growth);
        tighten_thresholds(queries, proposals, rank_for(plan.keep, double{1} * end / known), slab.thresholds,
                           slab.incomplete(), stream);
    }
}

matchcount::SparseRankJob SparseSession::rank_job(const SparsePlan& plan, const Sent& sent, const Slab& slab,
                                                  const Chunk& chunk) const
{
    matchcount::SparseRankJob job;
    job.rows = mirror_.rows();
    job.bounds = mirror_.form().bounds();
    job.order = mirror_.form().order();
    job.queries = {sent.offsets, sent.elements, sent.squares, sent.bounds,
                   std::min(plan.most_elements, matchcount::most_query_elements)};
    job.slots = slab.count;
    job.proposals = slab.proposals();
    job.incomplete = slab.incomplete();
    job.answers = chunk.answers;
    job.k = plan.k;
    return job;
}

void SparseSession::search_again(const SparsePlan& plan, const Workspace& workspace, std::uint32_t count,
                                 const Chunk& chunk) const
{
    Slab slab = workspace.again;
    for (std::uint32_t first = 0; first < count; first += again_slots) {
        slab.count = std::min(again_slots, count - first);
        const std::uint32_t* const ids = workspace.unproven + 1 + first;
        gather_slots(workspace.sent.slots, ids, slab.count, slab.padded, mirror_.form().columns(), slab.slots,
                     chunk.stream);
        clear(slab, chunk.stream);
        take_thresholds(slab.queries(), workspace.thresholds + first, slab.thresholds, chunk.stream);
        filter(slab, slab.proposals(), {0, mirror_.form().padded_positions()}, chunk.stream);
        matchcount::SparseRankJob job = rank_job(plan, workspace.sent, slab, chunk);
        job.ids = ids;
        rank_sparse(context_, job, chunk.stream);
    }
}

void SparseSession::search(const SparsePlan& plan, const Chunk& chunk, ThreadPool& pool,
                           SparseStatistics& statistics) const
{
    const auto begin = std::chrono::steady_clock::now();
    Carver host(chunk.host_workspace);
    const Sent written = lay_out_sent(plan, host);
    const std::uint32_t items = write_queries(plan, written, pool);
    send_written(chunk,
                 static_cast<std::size_t>(reinterpret_cast<std::byte*>(written.items + items) - chunk.host_workspace));
    statistics.writing += std::chrono::steady_clock::now() - begin;
    Carver memory(chunk.workspace);
    const Workspace workspace = lay_out(plan, memory);
    clear(workspace.slab, chunk.stream);
    check(cudaMemsetAsync(workspace.unproven, 0, sizeof(std::uint32_t), chunk.stream), "clearing counts");
    propose(plan, workspace.slab, chunk.stream);
    matchcount::SparseRankJob job = rank_job(plan, workspace.sent, workspace.slab, chunk);
    job.unproven = {workspace.unproven + 1, workspace.thresholds, workspace.unproven};
    rank_sparse(context_, job, chunk.stream);
    std::uint32_t left = 0;
    read_back(&left, workspace.unproven, sizeof(left), chunk.stream, "waiting for proofs");
    statistics.queries += plan.count;
    statistics.filtered_again += left;
    search_again(plan, workspace, left, chunk);
}

}  // namespace pgwarp::cuda
