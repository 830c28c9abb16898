// Attributes and queries of them as rows of an index.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/metric.h"
#include "protocol/rows.h"

namespace pgwarp
{

// Returns the words of a value of the type attributes or attribute_query as a palloc'ed row.
RowView read_parts_row(Datum value);
// All values fit into a row.
bool can_read_parts(Datum value);
// Returns the distance of attributes to a query, a row alone in its view, as the operator <&> does.
double attributes_row_distance(Metric metric, const RowView& query, Datum attributes);

}  // namespace pgwarp
