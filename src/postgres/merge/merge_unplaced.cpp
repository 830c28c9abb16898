// The unplaced rows of a merge, which are written without the engine.
#include "postgres/merge/merge_run.h"
#include "postgres/storage/fault_point.h"
#include "postgres/storage/unplaced.h"

namespace pgwarp
{

namespace
{

constexpr uint64 unplaced_between_delays = 4096;

void take_row(void* state, const UnplacedRow& row)
{
    auto* sort = static_cast<UnplacedSort*>(state);
    if (count_unplaced(sort) % unplaced_between_delays == 0) merge_delay_point();
    add_unplaced(sort, row);
}

}  // namespace

void carry_unplaced(MergeRun* merge)
{
    Directory* next = &merge->next;
    next->unplaced.generation = next->generation;
    if (!merge->writes_unplaced) return;
    UnplacedSort* sort = begin_unplaced_sort(work_mem, merge->meta.shape.attribute_count, nullptr);
    if (visit_unplaced(merge->index, merge->meta, *merge->directory, merge->unplaced_end, take_row, sort) ==
        ReadResult::recycled) {
        elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
    }
    write_unplaced(&merge->pages, sort, next);
    end_unplaced_sort(sort);
    fault_point("merge: unplaced rows written");
}

}  // namespace pgwarp
