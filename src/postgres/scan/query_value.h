// The query of a scan in the form of the SQL operator and in the form that the engine takes.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/metric.h"
#include "protocol/format.h"

namespace pgwarp
{

// Copies a vector into `query` as floats. Raises an error unless it has `length` dimensions, as SQL counts them.
void copy_query(ElementType element, Datum vector, int length, float* query);

// Writes the form that the engine takes to sent[dimensions]: of unit length under cosine. False when every order of
// rows is right (a zero vector under cosine): then `sent` is an arbitrary vector.
bool prepare_query(Metric metric, const float* query, uint32 dimensions, float* sent);

}  // namespace pgwarp
