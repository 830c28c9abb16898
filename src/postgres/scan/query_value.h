// The query of a scan, as the operator sees it and as the engine wants it.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/metric.h"
#include "protocol/format.h"

namespace pgwarp
{

// Copies a vector of `length` dimensions, as SQL counts them, into `query`; an error when it has others.
void copy_query(ElementType element, Datum vector, int length, float* query);

// The form that the engine gets, in sent[dimensions]. False when no order of rows is better than another (a zero vector
// under cosine): then `sent` is some vector.
bool prepare_query(Metric metric, const float* query, uint32 dimensions, float* sent);

}  // namespace pgwarp
