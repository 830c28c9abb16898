// The cost of comparing sets. Their elements lie out of line, where statistics of the column tell nothing of them: the
// size of the index tells how many there are.
#pragma once

#include "methods/description.h"
#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
#include "utils/rel.h"
}

namespace pgwarp
{

bool is_of_sets(ElementType element);

// The dimensions that comparing a row counts as. The exact search of sets takes the longer the more elements they have;
// that by signatures does not.
double compared_width_of_sets(ElementType element, const IndexOptInfo* info);

// The cost of the candidates of a search by signatures, which comes on top of comparing signatures. found: the rows
// that it looks for, fewer than those for which a search compares all rows.
Cost candidate_cost(const MethodDescription& method, Relation index, const IndexOptInfo* info,
                    const SearchCostInput& input, double found);

}  // namespace pgwarp
