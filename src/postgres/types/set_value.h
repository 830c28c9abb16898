// Values of SQL that are sets: arrays of integers and of strings, and tsvector. A set becomes its distinct elements, as
// 64-bit numbers in ascending order (protocol/part_rows.h): integers in their own order, texts and lexemes as hashes of
// their bytes. NULL elements of arrays are left out, and arrays of several dimensions are taken as one list.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/metric.h"
#include "protocol/rows.h"

namespace pgwarp
{

// Arrays tell the type of their elements themselves.
enum class SetKind : uint8 { array, lexemes };

inline constexpr uint32 max_set_elements = max_list_words / set_words;

template <SetKind kind>
struct SetsOf {
    // Returns the set as a palloc'ed row. Raises 54000 for more than max_set_elements.
    static RowView read_row(Datum value);
    // Whether read_row() accepts the value.
    static bool can_read(Datum value);
    // Returns the distance of a set to a query, a row of a set alone in its view, as the metric's operator does.
    static double row_distance(Metric metric, const RowView& query, Datum value);
    // Returns the distance of two sets. Raises 54000 likewise.
    static double distance(Metric metric, Datum a, Datum b);
};

}  // namespace pgwarp
