// One request's searches of many indexes for the same queries, as the scans of a partitioned table ask for: small
// indexes are spread over the pool's threads, each searched by one; large ones are searched by all threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/search/search.h"
#include "methods/rows/owned_rows.h"

namespace pgwarp
{

// One of the indexes. Without a mirror it is not searched.
struct SpreadTarget {
    SearchSettings settings;
    IndexAnswer answer{};
    std::vector<std::uint32_t> counts;  // per query
    std::vector<Result> results;
    std::vector<std::uint64_t> places;  // of the results, where they are wanted
    ParameterList resolved;
};

struct SpreadSearch {
    std::vector<SpreadTarget> targets;
    OwnedRows queries;
    QueryPredicates predicates;
    std::size_t count = 0;  // of queries
    Clock::duration dispatched{};

    // Estimated float operations of all targets.
    double cost() const;
};

// Fills the answers of the targets. When the search of one index fails, the client must ask for it alone. Throws
// Cancelled.
void run_spread_search(SpreadSearch& search, const CancelToken* cancel, ThreadPool& pool);

// The bytes behind the SearchIndexesReply.
std::vector<std::byte> spread_body(const SpreadSearch& search);

}  // namespace pgwarp
