// The orders that a scan in order of distance gives besides that of the distance itself: by expressions that never
// fall, or never rise, as the distance rises, such as `1 - (v <=> q)`.
#pragma once

#include "postgres/scan/limit_hint.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// How the rows of an index come in the order of a sort key.
struct DistanceOrder {
    OpExpr* distance;  // that the scan is ordered by; null: the index does not give the order
    bool by_distance;  // the key's value is the distance
    bool nans_first;   // rows whose distance is not a number come before those that have one
    bool nulls_first;  // NULLs come before all other rows
};

// Finds the distance of the index by which rows come in the order of a sort key of the query.
DistanceOrder find_distance_order(PlannerInfo* root, const IndexOptInfo* index, const PathKey* key);

// How a scan of an index path gives the order that the path has.
struct KeyOrder {
    bool own;          // of the distance itself, ascending, NULLs last: the scan needs no node above it
    OpExpr* distance;  // of the path; null where the order is its own
    Leading leading;
};

KeyOrder read_key_order(PlannerInfo* root, const IndexPath* path);

// A sort key for a scan by this distance, which belongs to no order of the query: the planner takes the distance's sort
// operator from it, and reads nothing else.
PathKey* make_own_key(const IndexOptInfo* index, const OpExpr* distance);

}  // namespace pgwarp
