// The executor's side of KnnPartitions.
#include "postgres/executor/partition_search.h"

#include <cmath>

#include "postgres/client/index_searches.h"
#include "postgres/executor/custom_scan.h"
#include "postgres/executor/knn_cache.h"
#include "postgres/executor/knn_filter.h"
#include "postgres/executor/partition_merge.h"
#include "postgres/scan/scan.h"
#include "postgres/settings.h"

extern "C" {
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/float.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

namespace pgwarp
{

constexpr double bound_slack = 1e-9;  // for what the executor computes anew

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
    PartitionMerge* order;  // in which its children's rows are handed on
    TupleBound bound;       // of the node
    PartitionScan* scans;
    uint32 count;
    const PartitionScan** scan_of_child;  // null: something else
    MemoryContext context;                // of the answers
    float* query;                         // that they are for; null: none yet
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
    bool bounded;             // the child knows the bound
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
    search->scan_of_child =
        static_cast<const PartitionScan**>(palloc0(sizeof(PartitionScan*) * Max(1, merge->ms_nplans)));
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
        auto* merge = castNode(MergeAppendState, state->child);
        state->search = make_search(merge, executor);
        state->search->order = make_partition_merge(merge, state->search);
    }
}

// A sort below, of a partition without an index, needs no more rows than the LIMIT. The LIMIT tells PostgreSQL's own
// nodes, but not a custom scan.
void bound_child(PartitionsState* state)
{
    ExecSetTupleBound(state->search != nullptr ? tuples_needed(state->search->bound) : -1, state->child);
    state->bounded = true;
}

TupleTableSlot* next_row(const PartitionsState* state)
{
    return state->search != nullptr ? next_merged_row(state->search->order) : ExecProcNode(state->child);
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

const CustomExecMethods execution_methods =
    make_custom_methods({"KnnPartitions", begin, execute, end, rescan, explain});

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
        } else if (is_knn_filter(node)) {
            node = scan_below_knn_filter(node);
        } else {
            return nullptr;
        }
    }
    return node;
}

// The answers fit into work_mem together. A scan whose answer isn't deep enough searches by itself: of many partitions
// few have all the rows.
void limit_answers(IndexSearch* searches, uint32 count)
{
    const uint64 room = uint64{1024} * static_cast<uint64>(work_mem) / (sizeof(Result) * Max(1U, count));
    for (uint32 i = 0; i < count; ++i) {
        searches[i].wanted = static_cast<uint32>(Min(uint64{searches[i].wanted}, Max(room, uint64{1})));
    }
}

// Whether two scans are ordered by the same distance: one operator, one query.
bool order_alike(const IndexScanState* a, const IndexScanState* b)
{
    Node* one = static_cast<Node*>(linitial(castNode(IndexScan, a->ss.ps.plan)->indexorderbyorig));
    Node* other = static_cast<Node*>(linitial(castNode(IndexScan, b->ss.ps.plan)->indexorderbyorig));
    if (!IsA(one, OpExpr) || !IsA(other, OpExpr)) return false;
    const auto* left = castNode(OpExpr, one);
    const auto* right = castNode(OpExpr, other);
    return left->opno == right->opno && equal(lsecond(left->args), lsecond(right->args));
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
    limit_answers(searches, *count);
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
        // All partitions have the same conditions.
        const bool filtered = search->scans[numbers[0]].hint.filter != nullptr;
        search_indexes(filtered ? plan_normal_search : plan_rungs, searches, count, metric, search->query, 1,
                       dimensions, &search->counts);
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

void limit_partition_search(PartitionSearch* search, const TupleBound& bound)
{
    search->bound = bound;
}

void add_partition_scan(PlanState* node, LimitHint* hint)
{
    PartitionSearch* search = hint->partitions;
    MergeAppendState* merge = search->merge;
    int plan = search->count > 0 ? search->scans[search->count - 1].plan + 1 : 0;
    while (plan < merge->ms_nplans && scan_of_partition(merge->mergeplans[plan]) != node) ++plan;
    const bool fits = plan < merge->ms_nplans &&
                      (search->count == 0 || order_alike(search->scans[0].scan, castNode(IndexScanState, node)));
    if (!fits) {
        hint->partitions = nullptr;
        return;
    }
    hint->partition = search->count;
    PartitionScan* scan = &search->scans[search->count++];
    *scan = {castNode(IndexScanState, node), plan, *hint, nullptr};
    search->scan_of_child[plan] = scan;
}

bool partition_bound(const PartitionSearch* search, int child, double* bound)
{
    const PartitionScan* scan = search->scan_of_child[child];
    if (scan == nullptr || scan->answer == nullptr) return false;
    const BatchAnswer& answer = *scan->answer;
    *bound = get_float8_infinity();
    if (answer.part == nullptr) return true;
    // Without results, or where rows may have been missed, whatever comes is found by later searches.
    const SearchReply& reply = answer.part->reply;
    if (answer.count == 0 || !access_method_of(scan->scan->iss_RelationDesc).complete) return false;
    if (reply.kind == ResultKind::approximate) return false;
    for (uint32 i = 0; i < answer.count; ++i) {
        *bound = Min(*bound, make_bounded(answer.results[i], reply.kind, reply.bound_width).value);
    }
    *bound -= bound_slack * std::fabs(*bound);
    return !std::isnan(*bound);
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
