#include "postgres/executor/partition_merge.h"

#include "postgres/executor/partition_search.h"

extern "C" {
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "lib/binaryheap.h"
#include "miscadmin.h"
#include "utils/sortsupport.h"
}

namespace pgwarp
{

// A begun child is compared by the row in its slot, a waiting one by its bound.
struct PartitionMerge {
    MergeAppendState* node;
    PartitionSearch* search;
    binaryheap* heap;  // of the children that may have rows, with the nearest on top
    bool has_bounds;   // the children are ordered by the distance itself
    bool* begun;
    double* bounds;
};

namespace
{

Datum sort_value(const PartitionMerge& merge, int child, int key, bool* is_null)
{
    if (merge.begun[child]) {
        return slot_getattr(merge.node->ms_slots[child], merge.node->ms_sortkeys[key].ssup_attno, is_null);
    }
    *is_null = false;
    return Float8GetDatum(merge.bounds[child]);
}

int compare_key(const PartitionMerge& merge, int left, int right, int key)
{
    bool left_null = false;
    bool right_null = false;
    const Datum left_value = sort_value(merge, left, key, &left_null);
    const Datum right_value = sort_value(merge, right, key, &right_null);
    return ApplySortComparator(left_value, left_null, right_value, right_null, &merge.node->ms_sortkeys[key]);
}

// Comparator of a heap with the largest on top; equal rows come in the order of Merge Append. A child that has not
// begun comes before rows at the distance of its bound.
int compare_children(Datum a, Datum b, void* argument)
{
    const auto& merge = *static_cast<const PartitionMerge*>(argument);
    const int left = DatumGetInt32(a);
    const int right = DatumGetInt32(b);
    const bool both_begun = merge.begun[left] && merge.begun[right];
    int order = compare_key(merge, left, right, 0);
    if (order == 0 && merge.begun[left] != merge.begun[right]) order = merge.begun[left] ? 1 : -1;
    for (int key = 1; order == 0 && both_begun && key < merge.node->ms_nkeys; ++key) {
        order = compare_key(merge, left, right, key);
    }
    return -order;
}

// Fetch a child's next row; false when it has none.
bool fetch_row(PartitionMerge* merge, int child)
{
    merge->begun[child] = true;
    TupleTableSlot* slot = ExecProcNode(merge->node->mergeplans[child]);
    merge->node->ms_slots[child] = slot;
    return !TupIsNull(slot);
}

// Fetch a row of the child on top of the heap, and restore the heap's order.
void advance_first(PartitionMerge* merge, int child)
{
    if (fetch_row(merge, child)) {
        binaryheap_replace_first(merge->heap, Int32GetDatum(child));
    } else {
        binaryheap_remove_first(merge->heap);
    }
}

// As ExecMergeAppend() does on its first call.
void find_children(MergeAppendState* node)
{
    if (node->ms_valid_subplans != nullptr) return;
#if PG_VERSION_NUM >= 180000
    node->ms_valid_subplans = ExecFindMatchingSubPlans(node->ms_prune_state, false, nullptr);
#else
    node->ms_valid_subplans = ExecFindMatchingSubPlans(node->ms_prune_state, false);
#endif
}

// The first child that begins sends the search for all of them, which gives the later children bounds.
void begin_merge(PartitionMerge* merge)
{
    MergeAppendState* node = merge->node;
    find_children(node);
    binaryheap_reset(merge->heap);
    memset(merge->begun, 0, sizeof(bool) * node->ms_nplans);
    for (int child = -1; (child = bms_next_member(node->ms_valid_subplans, child)) >= 0;) {
        const bool waits = merge->has_bounds && partition_bound(merge->search, child, &merge->bounds[child]);
        if (waits || fetch_row(merge, child)) binaryheap_add_unordered(merge->heap, Int32GetDatum(child));
    }
    binaryheap_build(merge->heap);
    node->ms_initialized = true;  // until ExecReScan()
}

TupleTableSlot* next_row(PartitionMerge* merge)
{
    const MergeAppendState* node = merge->node;
    binaryheap* heap = merge->heap;
    if (node->ms_nplans == 0) return nullptr;
    if (!node->ms_initialized) {
        begin_merge(merge);
    } else if (!binaryheap_empty(heap)) {
        advance_first(merge, DatumGetInt32(binaryheap_first(heap)));
    }
    while (!binaryheap_empty(heap)) {
        const int child = DatumGetInt32(binaryheap_first(heap));
        if (merge->begun[child]) return node->ms_slots[child];
        advance_first(merge, child);
    }
    return nullptr;
}

}  // namespace

PartitionMerge* make_partition_merge(MergeAppendState* node, PartitionSearch* search, bool by_distance)
{
    const int children = Max(1, node->ms_nplans);
    auto* merge = static_cast<PartitionMerge*>(palloc0(sizeof(PartitionMerge)));
    merge->node = node;
    merge->search = search;
    merge->has_bounds = by_distance && node->ms_nplans > 0;
    merge->begun = static_cast<bool*>(palloc0(sizeof(bool) * children));
    merge->bounds = static_cast<double*>(palloc0(sizeof(double) * children));
    merge->heap = binaryheap_allocate(children, compare_children, merge);
    return merge;
}

TupleTableSlot* next_merged_row(PartitionMerge* merge)
{
    PlanState* node = &merge->node->ps;
    CHECK_FOR_INTERRUPTS();
    if (node->chgParam != nullptr) ExecReScan(node);
    if (node->instrument != nullptr) InstrStartNode(node->instrument);
    TupleTableSlot* slot = next_row(merge);
    if (node->instrument != nullptr) InstrStopNode(node->instrument, TupIsNull(slot) ? 0.0 : 1.0);
    return slot;
}

}  // namespace pgwarp
