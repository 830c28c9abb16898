#include "matchcount/part_session.h"

#include <algorithm>

#include "device/error.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

using matchcount::CountedRows;
using matchcount::CountQueries;
using matchcount::Item;

void PartChunk::add(std::span<const Item> some, std::uint32_t bound_of_query, std::uint64_t postings_of_query)
{
    items.insert(items.end(), some.begin(), some.end());
    offsets.push_back(static_cast<std::uint32_t>(items.size()));
    bound = std::max(bound, bound_of_query);
    postings = std::max(postings, postings_of_query);
}

namespace
{

// The queries as they are sent; the same in page-locked memory and on the device.
struct Sent {
    std::uint32_t* offsets = nullptr;  // [count + 1]
    std::uint32_t* least = nullptr;    // [count]
    Item* items = nullptr;
};

Sent lay_out_sent(const PartChunk& chunk, Carver& memory)
{
    Sent sent;
    sent.offsets = memory.take<std::uint32_t>(chunk.offsets.size());
    sent.least = memory.take<std::uint32_t>(chunk.count());
    sent.items = memory.take<Item>(chunk.items.size());
    return sent;
}

CountedRows lay_out_rows(std::uint32_t count, std::size_t places, Carver& memory)
{
    CountedRows rows;
    rows.rows = memory.take<std::uint32_t>(count * places);
    rows.counts = memory.take<std::uint32_t>(count * places);
    rows.found = memory.take<std::uint32_t>(count);
    return rows;
}

template <class T>
void copy_back(T* to, const T* from, std::size_t count, cudaStream_t stream)
{
    check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "reading answers");
}

}  // namespace

struct PartSession::Layout {
    Sent sent;
    std::size_t sent_bytes = 0;
    CountedRows found;
    std::byte* counting = nullptr;
};

PartSession::PartSession(Context& context, const matchcount::KeywordListsView& lists, const std::uint32_t* dead)
    : context_(context), lists_(lists), dead_(dead)
{
}

PartSession::Layout PartSession::lay_out(const PartChunk& chunk, std::uint32_t places, std::size_t counting,
                                         Carver& memory) const
{
    Layout layout;
    layout.sent = lay_out_sent(chunk, memory);
    layout.sent_bytes = memory.used();
    layout.found = lay_out_rows(chunk.count(), places, memory);
    layout.counting = memory.take<std::byte>(counting);
    return layout;
}

CountQueries PartSession::queries_of(const PartChunk& chunk, const Layout& layout) const
{
    CountQueries queries;
    queries.count = chunk.count();
    queries.item_offsets = layout.sent.offsets;
    queries.items = layout.sent.items;
    queries.bound = chunk.bound;
    if (chunk.least > 0) queries.least = layout.sent.least;
    queries.dead = dead_;
    queries.postings = chunk.postings;
    return queries;
}

std::size_t PartSession::workspace_bytes(const PartChunk& chunk) const
{
    const std::size_t counting = top_counts_workspace_bytes(lists_, queries_of(chunk, {}), chunk.k, context_);
    return carved_bytes([&](Carver& memory) { (void)lay_out(chunk, chunk.k, counting, memory); });
}

PartSession::Layout PartSession::begin(const PartChunk& chunk, std::uint32_t places, std::size_t counting,
                                       Workspace& workspace)
{
    Layout layout;
    const auto on_device = [&](Carver& memory) { layout = lay_out(chunk, places, counting, memory); };
    Carver device(workspace.device(carved_bytes(on_device)));
    on_device(device);
    Sent written;
    const auto on_host = [&](Carver& memory) {
        written = lay_out_sent(chunk, memory);
        arrived_ = lay_out_rows(chunk.count(), chunk.k, memory);
    };
    Carver host(workspace.pinned(carved_bytes(on_host)));
    on_host(host);
    std::copy(chunk.offsets.begin(), chunk.offsets.end(), written.offsets);
    std::fill_n(written.least, chunk.count(), chunk.least);
    std::copy(chunk.items.begin(), chunk.items.end(), written.items);
    check(cudaMemcpyAsync(layout.sent.offsets, written.offsets, layout.sent_bytes, cudaMemcpyHostToDevice,
                          workspace.stream()),
          "sending queries");
    return layout;
}

void PartSession::find_top(const PartChunk& chunk, Workspace& workspace)
{
    const std::size_t counting = top_counts_workspace_bytes(lists_, queries_of(chunk, {}), chunk.k, context_);
    const Layout layout = begin(chunk, chunk.k, counting, workspace);
    const cudaStream_t stream = workspace.stream();
    const std::size_t places = std::size_t{chunk.count()} * chunk.k;
    // Places without a row are copied too.
    check(cudaMemsetAsync(layout.found.rows, 0, places * sizeof(std::uint32_t), stream), "clearing answers");
    check(cudaMemsetAsync(layout.found.counts, 0, places * sizeof(std::uint32_t), stream), "clearing answers");
    top_counts(lists_, queries_of(chunk, layout), chunk.k, layout.found, layout.counting, context_, stream);
    copy_back(arrived_.rows, layout.found.rows, places, stream);
    copy_back(arrived_.counts, layout.found.counts, places, stream);
    copy_back(arrived_.found, layout.found.found, chunk.count(), stream);
}

std::vector<pgwarp::matchcount::CountedRow> PartSession::find_all(const PartChunk& chunk, Workspace& workspace)
{
    const Layout layout = begin(chunk, lists_.rows, 0, workspace);
    const cudaStream_t stream = workspace.stream();
    rows_of_counts(lists_, queries_of(chunk, layout), lists_.rows, layout.found, context_, stream);
    std::uint32_t found = 0;
    read_back(&found, layout.found.found, sizeof(found), stream, "counting rows");
    std::vector<std::uint32_t> rows(found);
    std::vector<std::uint32_t> counts(found);
    read_back(rows.data(), layout.found.rows, found * sizeof(std::uint32_t), stream, "reading answers");
    read_back(counts.data(), layout.found.counts, found * sizeof(std::uint32_t), stream, "reading answers");
    std::vector<pgwarp::matchcount::CountedRow> all(found);
    for (std::size_t i = 0; i < found; ++i) all[i] = {rows[i], counts[i]};
    return all;
}

}  // namespace pgwarp::cuda
