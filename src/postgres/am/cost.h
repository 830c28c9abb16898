// Parts of the cost estimate that the planner's hooks share: which paths it forbids, which clauses drop no near row.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// The cost of a round trip to the engine in the planner's units: about twenty cached page reads.
inline constexpr double round_trip_cost = 20.0;

// The cost of a scan in order of distance that searches among a part of the rows.
struct PartCost {
    Cost startup;
    Cost run;
    double rows;  // that this query's LIMIT takes, divided by the share of `run` that it takes, as PostgreSQL counts
};
// path: of a scan of a pgwarp index. share: of the index's rows that are searched. passing: of these, the number that
// pass the query's filter.
PartCost cost_among_rows(PlannerInfo* root, const IndexPath* path, double share, double passing);
// The share of the index's rows that pass the search keys of a path, of which IS [NOT] NULL of the column that orders
// it is none.
double share_of_keys(PlannerInfo* root, const IndexPath* path);

// Whether amcostestimate marked a path of a pgwarp index as impossible: the path orders by no distance or by several,
// or there is no engine. PostgreSQL makes such paths nevertheless.
bool is_forbidden_path(const IndexPath* path);

// Whether a clause is IS NOT NULL of the index's key, given the distance that an index path is ordered by.
bool is_key_not_null(const RestrictInfo* info, const Node* distance);

}  // namespace pgwarp
