// The search of a chunk of queries among sets or attributes, from their items to rows in page-locked memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/carver.h"
#include "device/context.h"
#include "device/workspace.h"
#include "matchcount/match_count.h"

namespace pgwarp::cuda
{

// Queries with counters of one width.
struct PartChunk {
    std::vector<std::uint32_t> offsets{0};  // of the queries' items
    std::vector<matchcount::Item> items;
    std::uint32_t k = 0;
    std::uint32_t least = 0;     // rows of smaller counts are left out
    std::uint32_t bound = 0;     // of counts
    std::uint64_t postings = 0;  // about the most of a query

    std::uint32_t count() const { return static_cast<std::uint32_t>(offsets.size() - 1); }
    void add(std::span<const matchcount::Item> some, std::uint32_t bound_of_query, std::uint64_t postings_of_query);
};

class PartSession
{
public:
    // The context and the lists must outlive the session. `dead`: of the rows, device memory; may be null.
    PartSession(Context& context, const matchcount::KeywordListsView& lists, const std::uint32_t* dead);

    // Bytes of device memory of a search.
    std::size_t workspace_bytes(const PartChunk& chunk) const;
    // Enqueues the search of the k rows of largest count, and the copies of the answers. Throws std::bad_alloc.
    void find_top(const PartChunk& chunk, Workspace& workspace);
    // In page-locked memory, [count][k], once the stream's work is done.
    const matchcount::CountedRows& answers() const { return arrived_; }
    // Returns all rows of at least the least count, and at least 1, of the only query, in any order. Throws
    // std::bad_alloc.
    std::vector<pgwarp::matchcount::CountedRow> find_all(const PartChunk& chunk, Workspace& workspace);

private:
    struct Layout;
    Layout lay_out(const PartChunk& chunk, std::uint32_t places, std::size_t counting, Carver& memory) const;
    // Reserves memory and sends the queries.
    Layout begin(const PartChunk& chunk, std::uint32_t places, std::size_t counting, Workspace& workspace);
    matchcount::CountQueries queries_of(const PartChunk& chunk, const Layout& layout) const;

    Context& context_;
    const matchcount::KeywordListsView& lists_;
    const std::uint32_t* dead_;
    matchcount::CountedRows arrived_;
};

}  // namespace pgwarp::cuda
