// The share of rows within a bound of a distance. PostgreSQL takes a third for every inequality of an expression that
// it has no statistics of; few edits leave few rows, and plans above a search or a join need to know that.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/metric.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// The largest share of a table's rows that such a bound is expected to leave.
inline constexpr Selectivity usual_within = 0.001;

// Sets the selectivity of the relation's clauses that bound a distance of this index, as far as the bound is not known
// to be a wide one: of conditions to at most usual_within, of join clauses to one row for each outer row; of both to
// more where any common element is enough, and to 1 where all rows are within the bound. Returns whether any condition
// of the relation was among them: then the rows of relation and paths are to be estimated again.
bool set_bound_selectivity(PlannerInfo* root, RelOptInfo* rel, IndexOptInfo* index, Metric metric);

// Estimates the rows of the relation, and of its present paths, again.
void estimate_rows_again(PlannerInfo* root, RelOptInfo* rel);

// Estimates the rows of a partitioned table or another parent again, after those of its children.
void sum_rows_of_children(const PlannerInfo* root, RelOptInfo* rel);

}  // namespace pgwarp
