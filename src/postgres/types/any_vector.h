// Values of any of the vector types, by the type of their elements.
#pragma once

#include "postgres/types/vector.h"

namespace pgwarp
{

// "vector", "halfvec", "bit"
const char* element_type_name(ElementType element);
// The dimensions of an index's column as SQL counts them: of bit(n), n.
int index_dimensions(Relation index);
// 22000 "different vector dimensions %d and %d" or "different bit lengths %d and %d".
[[noreturn]] void refuse_different_dims(ElementType element, int a, int b);

// A vector of one of the types, detoasted. Of bit: words of 32 bits (numeric/bits.h), which go where floats go.
struct AnyVector {
    ElementType element;
    int dim;  // as SQL counts
    const void* x;
    void* copy;  // in the memory context of the call, or null
};
AnyVector read_any_vector(ElementType element, Datum value);
void free_any_vector(const AnyVector& vector);

// How many floats, or words in their place, it is.
uint32 width_of(const AnyVector& vector);
// Its values, to out[width_of()].
void copy_floats(const AnyVector& vector, float* out);
// Its values, in memory of the vector's own or of the current context.
const float* floats_of(const AnyVector& vector);

// What `values` become in a vector of such elements. 22003 where it has no room for them.
void round_to_element(ElementType element, float* values, int dim);

}  // namespace pgwarp
