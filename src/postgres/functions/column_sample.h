// A sample of a column's values, and what it tells of an index of the column.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/types/list_value.h"

namespace pgwarp
{

struct ColumnSample {
    uint64 count;  // rows looked at
    uint64 nulls;
    uint64 values;  // others
    Datum* value;   // [values]
    bool is_whole;  // whether these are all rows
};

// Reads up to some thousand rows of random pages, with the rights of the caller. `rows` is the estimated number of the
// table's rows. Must be called between SPI_connect() and SPI_finish(), after which the sample is gone.
ColumnSample sample_column(Relation table, const char* column, double rows);

// The rows of an index that the sample's values become.
struct SampledShape {
    int least_dimensions;  // as SQL counts; 0 for lists
    int most_dimensions;
    double zero_share;  // of vectors that are zero
    double words;       // of a list, on average
};
SampledShape measure_sample(const ColumnSample& sample, ElementType element, const ListType* list);

}  // namespace pgwarp
