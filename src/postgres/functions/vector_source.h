// Where the queries of knn_search() come from: an array, or a query's rows, a few at a time.
#pragma once

#include "postgres/types/vector.h"

extern "C" {
#include "executor/spi.h"
#include "utils/array.h"
}

namespace pgwarp
{

struct VectorSource {
    // of an array
    Datum* values;
    bool* nulls;
    // of a query
    Portal portal;
    // both
    MemoryContext detoasted;  // holds the vector at hand
    int64 number;             // of the vector at hand, from 1
    uint64 next;              // in `values`, or in the rows fetched
    uint64 count;
};

// The elements of an array of vectors, in order.
VectorSource open_array_source(::ArrayType* array);

// The rows of a query with one column, of type `type`; SPI must be connected. The query runs with the caller's rights
// under the caller's snapshot and may not write.
VectorSource open_text_source(const char* query, Oid type);

// Takes the next query; false at the end. *vector is null for NULL, else valid until the next call.
bool next_vector(VectorSource* source, const Vector** vector);

void close_source(VectorSource* source);

}  // namespace pgwarp
