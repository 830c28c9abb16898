// The executor's side of KnnPartitions.
#include "postgres/executor/partition_search.h"

#include "postgres/access/scan.h"
#include "postgres/engine/index_searches.h"
#include "postgres/executor/custom_scan.h"
#include "postgres/executor/distance_stop.h"
#include "postgres/executor/knn_cache.h"
#include "postgres/settings.h"

extern "C" {
#include "commands/explain.h"
#include "executor/executor.h"
#include "storage/predicate.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

namespace pgwarp
{

// One scan under the Merge Append.
struct PartitionScan {
    IndexScanState* scan;
    int plan;  // its position among the Merge Append's
    LimitHint hint;
    const BatchAnswer* answer;
};

struct PartitionSearch {
    const EState* executor;
    MergeAppendState* merge;
    LimitHint hint;  // of the node
    PartitionScan* scans;
    uint32 count;
    MemoryContext context;  // of the answers
    float* query;           // that they are for; null: none yet
    Metric metric;
    uint32 dimensions;
    uint64 hits;
    IndexSearchCounts counts;
};

namespace
{

struct PartitionsState {
    CustomScanState custom;
    PlanState* child;
    PartitionSearch* search;  // null: the child is no Merge Append
    bool bounded;             // the child knows the LIMIT
};

PartitionsState* state_of(CustomScanState* node)
{
    return reinterpret_cast<PartitionsState*>(node);
}

PartitionSearch* make_search(MergeAppendState* merge, EState* executor)
{
    auto* search = static_cast<PartitionSearch*>(palloc0(sizeof(PartitionSearch)));
    search->executor = executor;
    search->merge = merge;
    search->scans = static_cast<PartitionScan*>(palloc0(sizeof(PartitionScan) * Max(1, merge->ms_nplans)));
    search->context = AllocSetContextCreate(executor->es_query_cxt, "KnnPartitions", ALLOCSET_DEFAULT_SIZES);
    return search;
}

void begin(CustomScanState* node, EState* executor, int flags)
{
    PartitionsState* state = state_of(node);
    auto* scan = castNode(CustomScan, node->ss.ps.plan);
    state->child = ExecInitNode(static_cast<Plan*>(linitial(scan->custom_plans)), executor, flags);
    node->custom_ps = list_make1(state->child);
    // The child's slots are read as they are.
    node->ss.ps.scanops = ExecGetResultSlotOps(state->child, &node->ss.ps.scanopsfixed);
    node->ss.ps.scanopsset = true;
    ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
    if (IsA(state->child, MergeAppendState)) {
        state->search = make_search(castNode(MergeAppendState, state->child), executor);
    }
}

// A sort below, of a partition without an index, needs no more rows than the LIMIT.
void bound_child(PartitionsState* state)
{
    const LimitHint hint = state->search != nullptr ? state->search->hint : LimitHint{};
    const int64 rows = hint.filtered ? 0 : limit_hint_rows(hint);
    ExecSetTupleBound(rows > 0 ? rows : -1, state->child);
    state->bounded = true;
}

TupleTableSlot* execute(CustomScanState* node)
{
    PartitionsState* state = state_of(node);
    if (!state->bounded) bound_child(state);
    TupleTableSlot* slot = ExecProcNode(state->child);
    if (TupIsNull(slot) || node->ss.ps.ps_ProjInfo == nullptr) return slot;
    ExprContext* context = node->ss.ps.ps_ExprContext;
    ResetExprContext(context);
    context->ecxt_scantuple = slot;
    return ExecProject(node->ss.ps.ps_ProjInfo);
}

void forget_answers(PartitionSearch* search)
{
    if (search == nullptr || search->query == nullptr) return;
    for (uint32 i = 0; i < search->count; ++i) search->scans[i].answer = nullptr;
    search->query = nullptr;
    MemoryContextReset(search->context);
}

void end(CustomScanState* node)
{
    forget_answers(state_of(node)->search);
    ExecEndNode(state_of(node)->child);
}

void rescan(CustomScanState* node)
{
    PartitionsState* state = state_of(node);
    forget_answers(state->search);
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
    if (counts.requests == 0) return;
    ExplainPropertyText("Device", counts.on_cuda ? "cuda" : "cpu", explanation);
    if (explanation->timing) {
        ExplainPropertyFloat("Engine Time", "ms", static_cast<double>(counts.engine_ns) / 1e6, 3, explanation);
    }
}

CustomExecMethods make_methods()
{
    CustomExecMethods methods = {};
    methods.CustomName = "KnnPartitions";
    methods.BeginCustomScan = begin;
    methods.ExecCustomScan = execute;
    methods.EndCustomScan = end;
    methods.ReScanCustomScan = rescan;
    methods.ExplainCustomScan = explain;
    return methods;
}

const CustomExecMethods execution_methods = make_methods();

Node* create_state(CustomScan*)
{
    return make_custom_state<PartitionsState>(&execution_methods);
}

// The scan of a partition, below what hands its rows on; null: something else.
const PlanState* scan_of_partition(const PlanState* node)
{
    while (node != nullptr && !IsA(node, IndexScanState)) {
        if (IsA(node, ResultState)) {
            node = outerPlanState(node);
        } else if (is_distance_stop(node)) {
            node = static_cast<PlanState*>(linitial(reinterpret_cast<const CustomScanState*>(node)->custom_ps));
        } else {
            return nullptr;
        }
    }
    return node;
}

// The scans that this execution of the Merge Append begins, run-time pruning done. Serializable transactions see them
// as read from now on.
IndexSearch* collect_searches(PartitionSearch* search, uint32** numbers, uint32* count)
{
    auto* searches = static_cast<IndexSearch*>(palloc0(sizeof(IndexSearch) * search->count));
    *numbers = static_cast<uint32*>(palloc(sizeof(uint32) * search->count));
    *count = 0;
    for (uint32 i = 0; i < search->count; ++i) {
        const PartitionScan& scan = search->scans[i];
        if (!bms_is_member(scan.plan, search->merge->ms_valid_subplans)) continue;
        Relation index = scan.scan->iss_RelationDesc;
        PredicateLockRelation(index, search->executor->es_snapshot);
        searches[*count] = {index, first_wanted(scan.hint), nullptr};
        (*numbers)[(*count)++] = i;
    }
    return searches;
}

// Search for all scans at once.
void fetch_answers(PartitionSearch* search, Metric metric, const float* query, uint32 dimensions)
{
    forget_answers(search);
    MemoryContext outer = MemoryContextSwitchTo(search->context);
    search->query = static_cast<float*>(palloc(sizeof(float) * dimensions));
    memcpy(search->query, query, sizeof(float) * dimensions);
    search->metric = metric;
    search->dimensions = dimensions;
    uint32* numbers = nullptr;
    uint32 count = 0;
    IndexSearch* searches = collect_searches(search, &numbers, &count);
    if (count > 1) {
        keep_next_batches();
        search_indexes(plan_normal_search, searches, count, metric, search->query, 1, dimensions, &search->counts);
        for (uint32 i = 0; i < count; ++i) search->scans[numbers[i]].answer = searches[i].answers;
    }
    MemoryContextSwitchTo(outer);
}

}  // namespace

const CustomScanMethods partition_search_scan_methods = {"KnnPartitions", create_state};

PartitionSearch* partition_search_of(PlanState* node)
{
    if (!IsA(node, CustomScanState)) return nullptr;
    auto* custom = castNode(CustomScanState, node);
    return custom->methods == &execution_methods ? state_of(custom)->search : nullptr;
}

void limit_partition_search(PartitionSearch* search, const LimitHint& hint)
{
    search->hint = hint;
}

void add_partition_scan(PlanState* node, LimitHint* hint)
{
    PartitionSearch* search = hint->partitions;
    MergeAppendState* merge = search->merge;
    int plan = search->count > 0 ? search->scans[search->count - 1].plan + 1 : 0;
    while (plan < merge->ms_nplans && scan_of_partition(merge->mergeplans[plan]) != node) ++plan;
    if (plan == merge->ms_nplans) {
        hint->partitions = nullptr;
        return;
    }
    hint->partition = search->count;
    search->scans[search->count++] = {castNode(IndexScanState, node), plan, *hint, nullptr};
}

bool partition_shape(const PartitionSearch* search, uint32 number, Metric* metric, uint32* dimensions)
{
    if (search == nullptr || search->scans[number].answer == nullptr) return false;
    *metric = search->metric;
    *dimensions = search->dimensions;
    return true;
}

const BatchAnswer* find_partition_answer(PartitionSearch* search, uint32 number, Metric metric, const float* query,
                                         uint32 dimensions)
{
    const Size bytes = sizeof(float) * dimensions;
    const bool same = search->query != nullptr && search->metric == metric && search->dimensions == dimensions &&
                      memcmp(search->query, query, bytes) == 0;
    // Indexes of several metrics have several queries: all but the first are searched alone.
    if (!same && search->query != nullptr) return nullptr;
    if (!same) fetch_answers(search, metric, query, dimensions);
    const BatchAnswer* answer = search->scans[number].answer;
    if (answer != nullptr) search->hits++;
    return answer;
}

}  // namespace pgwarp
