// Where the queries of knn_search() come from: an array, or a query's rows, a few at a time.
#pragma once

#include "postgres/types/any_vector.h"

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
    ElementType element;      // of the values
    ElementType wanted;       // of the vectors handed out: values are cast to it
    MemoryContext detoasted;  // holds the vector at hand
    int64 number;             // of the vector at hand, from 1
    uint64 next;              // in `values`, or in the rows fetched
    uint64 count;
};

// The elements of an array of vectors of any type, in order.
VectorSource open_array_source(::ArrayType* array);

// The rows of a query with one column, of one of the vector types; SPI must be connected. The query runs with the
// caller's rights under the caller's snapshot and may not write. `type` is the one that errors ask for.
VectorSource open_text_source(const char* query, Oid type);

// Takes the next query; false at the end. `values` is null for NULL, else valid until the next call.
struct SourceVector {
    int dim;
    const float* values;
};
bool next_vector(VectorSource* source, SourceVector* vector);

void close_source(VectorSource* source);

}  // namespace pgwarp
