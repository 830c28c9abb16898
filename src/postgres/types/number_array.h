// Arrays of numbers that become vectors: of integer, real, double precision and numeric.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

class NumberArray
{
public:
    // Raises 22000 for an array of several dimensions, 22004 for one that has NULLs. The elements are in the current
    // memory context, and may point into the datum's own memory.
    explicit NumberArray(Datum array);

    int count() const { return count_; }
    // Returns the nearest float, which may be infinite, NaN or 0. Raises 22000 for other types of elements.
    float value(int i) const;
    // Frees the memory of the elements.
    void release();

private:
    Oid type_;
    Datum* elements_;
    int count_;
};

}  // namespace pgwarp
