// The key columns of an index: one is ordered by distance (its vectors, or lists); rows are filtered by the others,
// whose values are kept as codes (attribute_code.h).
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Support functions of an operator class that orders by distance: number 1 returns its metric, number 2 the element
// type of its SQL type, number 3, which is optional, the arithmetic of its operator. Operator classes of columns to
// filter by have none.
inline constexpr uint16 metric_support = 1;
inline constexpr uint16 element_support = 2;
inline constexpr uint16 arithmetic_support = 3;
inline constexpr uint16 last_support = arithmetic_support;

// Filter columns of an index, at most.
inline constexpr int most_filter_columns = 15;

// The position, from 0, of the column that the index orders by. The first one where check_index_columns() would raise
// an error.
int vector_column(Relation index);
int vector_column(const IndexOptInfo* index);

// The SQL type and the declared length of that column.
Oid vector_type(Relation index);
int32 vector_modifier(Relation index);
// Its dimensions as SQL counts them: n for bit(n).
int index_dimensions(Relation index);

// The number of columns to filter by, and the position of the one with this number among them.
int filter_column_count(Relation index);
int filter_column(int vector, int number);
// The reverse: the number among them of the column at this position.
int filter_number(int vector, int column);

// Raises an error unless the index orders by one column, and has few enough others.
void check_index_columns(Relation index);

}  // namespace pgwarp
