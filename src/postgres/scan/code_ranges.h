// Sets of codes of one column: sorted, disjoint ranges in palloc'ed memory.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/predicates.h"

namespace pgwarp
{

struct CodeRanges {
    CodeRange* items;
    uint32 count;
    uint32 capacity;
};

void add_range(CodeRanges* ranges, uint64 first, uint64 last);
// Sorts ranges that were added in any order, and joins those that touch.
void sort_ranges(CodeRanges* ranges);
// The codes that are in both sets, which are sorted.
CodeRanges intersect_ranges(const CodeRanges& a, const CodeRanges& b);
// Halves the number of ranges: the set grows by the codes between two neighbours.
void widen_ranges(CodeRanges* ranges);

}  // namespace pgwarp
