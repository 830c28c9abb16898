// What an index will take, estimated before it is built, with default options. Each method's estimate is in
// methods/METHOD/estimate.cpp.
//
// Sizes follow from the shapes of the arrays. Times are those of one core with AVX2, fitted to builds of 20,000 and
// 100,000 rows of 128 to 1,536 dimensions; other processors differ by a factor of two. Those of a GPU are rough. They
// leave out the table's scan and the writing of pages, which do not depend on the method.
//
// These files are compiled into all binaries, without exceptions and without headers of PostgreSQL.
#pragma once

#include "protocol/format.h"

namespace pgwarp
{

struct EstimateInput {
    IndexShape shape;
    double rows;
    double words;  // of a row that is a list, on average; 0 for dense rows
};

struct BuildEstimate {
    double stored_bytes;  // of the method's arrays
    double host_bytes;    // resident in the engine where the CPU serves the index
    double gpu_bytes;     // resident on a GPU that serves it
    double core_seconds;  // of the engine's build on the CPU
    double gpu_seconds;   // of the engine's build on a GPU
};

// The bytes of a row in the array `vectors`: halves stay halves where the method keeps them unchanged.
inline double bytes_of_floats(const IndexShape& shape)
{
    return 4.0 * shape.dimensions;
}
inline double bytes_of_halves(const IndexShape& shape)
{
    return 2.0 * shape.dimensions;
}

}  // namespace pgwarp
