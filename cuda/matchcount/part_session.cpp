#include "matchcount/part_session.h"

#include <algorithm>

#include "device/wait.h"

namespace pgwarp::cuda
{

using matchcount::CountedRows;
using matchcount::CountQueries;
using matchcount::Item;

void PartPlan::add(std::span<const Item> some, std::uint32_t bound_of_query, std::uint64_t postings_of_query)
{
    items.insert(items.end(), some.begin(), some.end());
    offsets.push_back(static_cast<std::uint32_t>(items.size()));
    bound = std::max(bound, bound_of_query);
    postings = std::max(postings, postings_of_query);
    ++count;
}

namespace
{

// The queries as they are sent; the same in page-locked memory and on the device.
struct Sent {
    std::uint32_t* offsets = nullptr;  // [count + 1]
    std::uint32_t* least = nullptr;    // [count]
    Item* items = nullptr;
};

Sent lay_out_sent(const PartPlan& plan, Carver& memory)
{
    Sent sent;
    sent.offsets = memory.take<std::uint32_t>(plan.offsets.size());
    sent.least = memory.take<std::uint32_t>(plan.count);
    sent.items = memory.take<Item>(plan.items.size());
    return sent;
}

CountedRows lay_out_all(const matchcount::KeywordListsView& lists, Carver& memory)
{
    CountedRows rows;
    rows.rows = memory.take<std::uint32_t>(lists.rows);
    rows.counts = memory.take<std::uint32_t>(lists.rows);
    rows.found = memory.take<std::uint32_t>(1);
    return rows;
}

std::size_t sent_bytes(const PartPlan& plan)
{
    return carved_bytes([&](Carver& memory) { (void)lay_out_sent(plan, memory); });
}

}  // namespace

PartSession::PartSession(Context& context, const matchcount::KeywordListsView& lists, const std::uint32_t* dead)
    : context_(context), lists_(lists), dead_(dead)
{
}

// Without addresses.
CountQueries PartSession::queries_of(const PartPlan& plan) const
{
    CountQueries queries;
    queries.count = plan.count;
    queries.bound = plan.bound;
    queries.dead = dead_;
    queries.postings = plan.postings;
    return queries;
}

void PartSession::reserve_top(PartPlan& plan) const
{
    plan.host_workspace = sent_bytes(plan);
    plan.workspace =
        plan.host_workspace + matchcount::top_counts_workspace_bytes(lists_, queries_of(plan), plan.k, context_);
}

void PartSession::reserve_all(PartPlan& plan) const
{
    plan.host_workspace = sent_bytes(plan);
    plan.workspace = plan.host_workspace + carved_bytes([&](Carver& memory) { (void)lay_out_all(lists_, memory); });
}

CountQueries PartSession::send(const PartPlan& plan, const Chunk& chunk, Carver& memory) const
{
    Carver host(chunk.host_workspace);
    const Sent written = lay_out_sent(plan, host);
    std::copy(plan.offsets.begin(), plan.offsets.end(), written.offsets);
    std::fill_n(written.least, plan.count, plan.least);
    std::copy(plan.items.begin(), plan.items.end(), written.items);
    const Sent sent = lay_out_sent(plan, memory);
    send_written(chunk, memory.used());
    CountQueries queries = queries_of(plan);
    queries.item_offsets = sent.offsets;
    queries.items = sent.items;
    if (plan.least > 0) queries.least = sent.least;
    return queries;
}

void PartSession::find_top(const PartPlan& plan, const Chunk& chunk) const
{
    Carver memory(chunk.workspace);
    const CountQueries queries = send(plan, chunk, memory);
    CountedRows out;
    out.rows = chunk.answers.rows;
    out.found = chunk.answers.found;
    out.distances = chunk.answers.values;
    std::byte* const rest = memory.take<std::byte>(0);
    top_counts(lists_, queries, plan.k, out, rest, context_, chunk.stream);
}

std::vector<pgwarp::matchcount::CountedRow> PartSession::find_all(const PartPlan& plan, const Chunk& chunk) const
{
    Carver memory(chunk.workspace);
    const CountQueries queries = send(plan, chunk, memory);
    const CountedRows out = lay_out_all(lists_, memory);
    rows_of_counts(lists_, queries, lists_.rows, out, context_, chunk.stream);
    std::uint32_t found = 0;
    read_back(&found, out.found, sizeof(found), chunk.stream, "counting rows");
    std::vector<std::uint32_t> rows(found);
    std::vector<std::uint32_t> counts(found);
    read_back(rows.data(), out.rows, found * sizeof(std::uint32_t), chunk.stream, "reading answers");
    read_back(counts.data(), out.counts, found * sizeof(std::uint32_t), chunk.stream, "reading answers");
    std::vector<pgwarp::matchcount::CountedRow> all(found);
    for (std::size_t i = 0; i < found; ++i) all[i] = {rows[i], counts[i]};
    return all;
}

}  // namespace pgwarp::cuda
