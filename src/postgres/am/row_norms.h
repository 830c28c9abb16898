// The norms of an index's rows, kept where bounds of the operator's distances need them (numeric/float32_distance.h).
#pragma once

#include "postgres/am/element_type.h"
#include "postgres/storage/metapage.h"

namespace pgwarp
{

// Whether an index of this key and shape keeps the norms of its rows in its metapage.
inline bool keeps_norms(const KeyType& key, const IndexShape& shape)
{
    return key.arithmetic == Arithmetic::float32 && bounds_need_norms(static_cast<Metric>(shape.metric));
}

// The norm of a heap row's value as a range.
NormRange range_of_row(const IndexShape& shape, Datum value);

}  // namespace pgwarp
