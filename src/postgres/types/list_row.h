// A list of words as a view of one row.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/rows.h"

namespace pgwarp
{

// Returns a view of one row that is a list of these words. It points to them and to palloc'ed memory.
inline RowView one_list_row(const uint32* words, uint32 count)
{
    auto* offsets = static_cast<uint64*>(palloc(sizeof(uint64) * 2));
    offsets[0] = 0;
    offsets[1] = count;
    RowView row;
    row.count = 1;
    row.offsets = offsets;
    row.words = words;
    return row;
}

}  // namespace pgwarp
