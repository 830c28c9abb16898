// The source of knn_search()'s queries: an array, or the rows of a query, which are fetched a few at a time.
#pragma once

#include "postgres/types/any_vector.h"

extern "C" {
#include "executor/spi.h"
#include "utils/array.h"
}

namespace pgwarp
{

struct VectorSource {
    // For an array:
    Datum* values;
    bool* nulls;
    // For a query:
    Portal portal;
    // For both:
    ElementType element;      // of the source's values
    ElementType wanted;       // of the returned vectors: values are cast to it
    MemoryContext detoasted;  // holds the present vector
    int64 number;             // of the present vector, from 1
    uint64 next;              // position in `values`, or in the fetched rows
    uint64 count;
};

// Reads the elements of an array of vectors of any type, in order.
VectorSource open_array_source(::ArrayType* array);

// Reads the rows of a query with one column of a vector type; SPI must be connected. The query runs with the caller's
// rights under the caller's snapshot and must not write. Errors name `type` as the expected type.
VectorSource open_text_source(const char* query, Oid type);

// Gets the next query; false at the end. `values` is null for NULL, otherwise valid until the next call.
struct SourceVector {
    int dim;
    const float* values;
};
bool next_vector(VectorSource* source, SourceVector* vector);

void close_source(VectorSource* source);

}  // namespace pgwarp
