// The executor's side of KnnPartitions: starts the shared search and returns the children's rows in order.
#include "postgres/executor/knn_partitions.h"

#include "postgres/executor/custom_scan.h"
#include "postgres/executor/explain_keys.h"
#include "postgres/executor/partition_merge.h"
#include "postgres/executor/partition_search.h"

extern "C" {
#include "commands/explain.h"
#include "executor/executor.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

namespace pgwarp
{

namespace
{

struct PartitionsState {
    CustomScanState custom;
    PlanState* child;
    PartitionSearch* search;  // null: the child is not a Merge Append
    PartitionMerge* order;    // merges the rows of the Merge Append's children
    TupleBound bound;         // of the node
    bool bounded;             // the child was told the bound
};

PartitionsState* state_of(CustomScanState* node)
{
    return reinterpret_cast<PartitionsState*>(node);
}

void begin(CustomScanState* node, EState* executor, int flags)
{
    PartitionsState* state = state_of(node);
    auto* scan = castNode(CustomScan, node->ss.ps.plan);
    state->child = ExecInitNode(static_cast<Plan*>(linitial(scan->custom_plans)), executor, flags);
    node->custom_ps = list_make1(state->child);
    // The node reads the child's slots in their own format.
    node->ss.ps.scanops = ExecGetResultSlotOps(state->child, &node->ss.ps.scanopsfixed);
    node->ss.ps.scanopsset = true;
    ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
    if (IsA(state->child, MergeAppendState)) {
        auto* merge = castNode(MergeAppendState, state->child);
        state->search = make_partition_search(merge, executor);
        const bool by_distance = intVal(linitial(scan->custom_private)) != 0;
        state->order = make_partition_merge(merge, state->search, by_distance);
    }
}

// A sort below, for a partition without an index, needs no more rows than the LIMIT. PostgreSQL tells its own nodes
// about the LIMIT, but not a custom scan.
void bound_child(PartitionsState* state)
{
    ExecSetTupleBound(state->search != nullptr ? tuples_needed(state->bound) : -1, state->child);
    state->bounded = true;
}

TupleTableSlot* next_row(const PartitionsState* state)
{
    return state->search != nullptr ? next_merged_row(state->order) : ExecProcNode(state->child);
}

TupleTableSlot* execute(CustomScanState* node)
{
    PartitionsState* state = state_of(node);
    if (!state->bounded) bound_child(state);
    TupleTableSlot* slot = next_row(state);
    if (TupIsNull(slot) || node->ss.ps.ps_ProjInfo == nullptr) return slot;
    ExprContext* context = node->ss.ps.ps_ExprContext;
    ResetExprContext(context);
    context->ecxt_scantuple = slot;
    return ExecProject(node->ss.ps.ps_ProjInfo);
}

void end(CustomScanState* node)
{
    if (state_of(node)->search != nullptr) forget_partition_answers(state_of(node)->search);
    ExecEndNode(state_of(node)->child);
}

void rescan(CustomScanState* node)
{
    PartitionsState* state = state_of(node);
    if (state->search != nullptr) forget_partition_answers(state->search);
    state->bounded = false;
    if (node->ss.ps.chgParam != nullptr) UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
    if (state->child->chgParam == nullptr) ExecReScan(state->child);
}

void explain(CustomScanState* node, List*, ExplainState* explanation)
{
    const PartitionSearch* search = state_of(node)->search;
    if (!explanation->analyze || search == nullptr) return;
    const IndexSearchCounts& counts = search->counts;
    ExplainPropertyUInteger("Requests", nullptr, counts.requests, explanation);
    ExplainPropertyUInteger("Searches", nullptr, counts.searches, explanation);
    ExplainPropertyUInteger("Cache Hits", nullptr, search->hits, explanation);
    explain_keys(search->keyed, false, explanation);
    if (counts.requests == 0) return;
    ExplainPropertyText("Device", counts.on_cuda ? "cuda" : "cpu", explanation);
    if (explanation->timing) {
        ExplainPropertyFloat("Engine Time", "ms", static_cast<double>(counts.engine_ns) / 1e6, 3, explanation);
    }
}

const CustomExecMethods execution_methods =
    make_custom_methods({"KnnPartitions", begin, execute, end, rescan, explain});

Node* create_state(CustomScan*)
{
    return make_custom_state<PartitionsState>(&execution_methods);
}

}  // namespace

List* knn_partitions_private(bool by_distance)
{
    return list_make1(makeInteger(by_distance ? 1 : 0));
}

const CustomScanMethods knn_partitions_scan_methods = {"KnnPartitions", create_state};

PartitionSearch* partition_search_of(PlanState* node)
{
    if (!IsA(node, CustomScanState)) return nullptr;
    auto* custom = castNode(CustomScanState, node);
    return custom->methods == &execution_methods ? state_of(custom)->search : nullptr;
}

void limit_knn_partitions(PlanState* node, const TupleBound& bound)
{
    state_of(castNode(CustomScanState, node))->bound = bound;
}

}  // namespace pgwarp
