// How the vector of a row lies in the logs: halfvecs as they are, vectors as the index keeps them (of unit length for
// cosine).
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

uint32 stored_value_bytes(const IndexShape& shape);

// The row's vector as the engine gets it: floats, of unit length for cosine.
void decode_stored_value(const IndexShape& shape, const char* stored, float* out);

// Scales to unit length in float64. False for the zero vector, which is left alone.
bool normalise(float* vector, uint32 dimensions);

}  // namespace pgwarp
