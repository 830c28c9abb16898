#include "postgres/scan/code_ranges.h"

#include <algorithm>

namespace pgwarp
{

void add_range(CodeRanges* ranges, uint64 first, uint64 last)
{
    if (ranges->count == ranges->capacity) {
        const uint32 capacity = Max(8U, 2 * ranges->capacity);
        const Size bytes = sizeof(CodeRange) * capacity;
        ranges->items =
            static_cast<CodeRange*>(ranges->items == nullptr ? MemoryContextAllocHuge(CurrentMemoryContext, bytes)
                                                             : repalloc_huge(ranges->items, bytes));
        ranges->capacity = capacity;
    }
    ranges->items[ranges->count++] = {first, last};
}

void sort_ranges(CodeRanges* ranges)
{
    if (ranges->count == 0) return;
    std::sort(ranges->items, ranges->items + ranges->count,
              [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
    uint32 kept = 0;
    for (uint32 i = 1; i < ranges->count; ++i) {
        CodeRange& last = ranges->items[kept];
        const CodeRange& next = ranges->items[i];
        if (next.first == 0 || next.first - 1 <= last.last) {
            last.last = Max(last.last, next.last);
        } else {
            ranges->items[++kept] = next;
        }
    }
    ranges->count = kept + 1;
}

CodeRanges intersect_ranges(const CodeRanges& a, const CodeRanges& b)
{
    CodeRanges both = {};
    for (uint32 i = 0, j = 0; i < a.count && j < b.count;) {
        const uint64 first = Max(a.items[i].first, b.items[j].first);
        const uint64 last = Min(a.items[i].last, b.items[j].last);
        if (first <= last) add_range(&both, first, last);
        if (a.items[i].last < b.items[j].last) {
            ++i;
        } else {
            ++j;
        }
    }
    return both;
}

void widen_ranges(CodeRanges* ranges)
{
    uint32 kept = 0;
    for (uint32 i = 0; i < ranges->count; i += 2) {
        const uint32 last = Min(i + 1, ranges->count - 1);
        ranges->items[kept++] = {ranges->items[i].first, ranges->items[last].last};
    }
    ranges->count = kept;
}

}  // namespace pgwarp
