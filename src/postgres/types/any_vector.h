// Values of all vector types, selected by the type of their elements.
#pragma once

#include "postgres/types/vector.h"

namespace pgwarp
{

// Returns "vector", "halfvec", "bit" or "sparsevec".
const char* element_type_name(ElementType element);
// Raises 22000 "different vector dimensions %d and %d" or "different bit lengths %d and %d".
[[noreturn]] void refuse_different_dims(ElementType element, int a, int b);

// A detoasted vector of any of the types. For bit: words of 32 bits (numeric/bits.h) in the place of floats.
struct AnyVector {
    ElementType element;
    int dim;  // as SQL counts: bits of a bit string
    const void* x;
    void* copy;  // palloc'ed copy to free, or null
};
// Reads a value whose type has this element type.
AnyVector read_any_vector(ElementType element, Datum value);
void free_any_vector(const AnyVector& vector);

// Returns the number of floats, or of words in their place.
uint32 width_of(const AnyVector& vector);
// Writes the values to out[width_of()].
void copy_floats(const AnyVector& vector, float* out);
// Returns the values, in the vector's own memory or in the current memory context.
const float* floats_of(const AnyVector& vector);

// Rounds `values` to the element type. Raises 22003 if a value is out of its range.
void round_to_element(ElementType element, float* values, int dim);

}  // namespace pgwarp
