// Text as rows of an index: views of packed words (protocol/text_rows.h).
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/edit_distance.h"
#include "numeric/metric.h"
#include "protocol/rows.h"

namespace pgwarp
{

// Lets PostgreSQL interrupt a long comparison.
extern const EditPoll interrupt_poll;

// Packs a text into a palloc'ed row. Raises 54000 for more than max_text_characters characters.
RowView read_text_row(Datum text);
// Returns the distance of a text to a query, a row of text alone in its view, as the metric's operator does.
double text_row_distance(Metric metric, const RowView& query, Datum text);

}  // namespace pgwarp
