// The SQL types whose rows are lists of words (protocol/rows.h), and how values of each become rows and queries. A new
// type adds a row to the table in list_value.cpp.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/metric.h"
#include "protocol/rows.h"

namespace pgwarp
{

struct ListType {
    ElementType element;
    Oid type;      // of the rows; InvalidOid: all types that an operator class of this element is for
    double width;  // comparing two values of usual size costs as much as comparing vectors of these dimensions
    // Returns a row of an index; palloc'ed. Raises 54000 for a value that is too long for one.
    RowView (*read_row)(Datum value);
    // Returns a query, whose SQL type may differ from that of rows; palloc'ed. Raises 54000 likewise.
    RowView (*read_query)(Datum value);
    // Whether read_query() accepts the value.
    bool (*can_read_query)(Datum value);
    // Returns the distance of a row to a query that read_query() returned, as the metric's operator does.
    double (*distance)(Metric metric, const RowView& query, Datum row);
    // Returns the dimensions of a value, which are those of the index. Null: the type has none.
    int (*dimensions)(Datum value) = nullptr;
};

// Returns null where the element type is no list, or this type has no such rows.
const ListType* find_list_type(ElementType element, Oid type);

}  // namespace pgwarp
