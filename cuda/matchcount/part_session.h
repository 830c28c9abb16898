// The search of a chunk of queries among sets or attributes, from their items to rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/searcher.h"
#include "matchcount/match_count.h"

namespace pgwarp::cuda
{

// A chunk of queries with counters of one width.
struct PartPlan : ChunkPlan {
    std::vector<std::uint32_t> offsets{0};  // [count + 1], of the queries' items
    std::vector<matchcount::Item> items;
    std::uint32_t least = 0;     // rows of smaller counts are left out
    std::uint32_t bound = 0;     // of counts
    std::uint64_t postings = 0;  // about the most of a query

    void add(std::span<const matchcount::Item> some, std::uint32_t bound_of_query, std::uint64_t postings_of_query);
};

class PartSession
{
public:
    // The context and the lists must outlive the session. `dead`: of the rows, device memory; may be null.
    PartSession(Context& context, const matchcount::KeywordListsView& lists, const std::uint32_t* dead);

    // Sets the bytes of both workspaces, for find_top() or for find_all().
    void reserve_top(PartPlan& plan) const;
    void reserve_all(PartPlan& plan) const;
    // Enqueues the search of the k rows of largest count.
    void find_top(const PartPlan& plan, const Chunk& chunk) const;
    // Returns all rows of at least the least count, and at least 1, of the only query, in any order.
    std::vector<pgwarp::matchcount::CountedRow> find_all(const PartPlan& plan, const Chunk& chunk) const;

private:
    // Both write the queries and send them.
    matchcount::CountQueries send(const PartPlan& plan, const Chunk& chunk, Carver& memory) const;
    matchcount::CountQueries queries_of(const PartPlan& plan) const;

    Context& context_;
    const matchcount::KeywordListsView& lists_;
    const std::uint32_t* dead_;
};

}  // namespace pgwarp::cuda
