// The executor's side of KnnFilter: filters the scan's rows, holds them back and returns them in order of distance.
#include "postgres/executor/knn_filter.h"

#include <cmath>

#include "postgres/executor/custom_scan.h"
#include "postgres/executor/explain_keys.h"
#include "postgres/executor/filter_bounds.h"
#include "postgres/executor/held_rows.h"
#include "postgres/executor/knn_bitmap.h"
#include "postgres/executor/knn_filter_plan.h"
#include "postgres/executor/scan_watch.h"
#include "postgres/scan/filtered_scan.h"
#include "postgres/scan/search_limits.h"
#include "postgres/settings.h"

extern "C" {
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

namespace pgwarp
{

namespace
{

struct KnnFilterState {
    CustomScanState custom;
    PlanState* child;
    KnnBitmap* bitmap;  // null: any row may pass
    double pass_rate;   // of rows of the index
    double rate_among;  // of those in the bitmap
    FilterBounds bounds;
    bool ends_at_null;  // no row passes whose key is NULL
    bool passes_all;    // the node only tells the scan which rows come first
    Leading leading;
    bool led;        // the scan was told of them
    LimitHint hint;  // of the node
    FilteredScan scan;
    HeldRows held;
    TupleTableSlot* slot;  // of the node, while ss_ScanTupleSlot may be the child's
    bool takes_slots;      // the child's slots are of the node's kind
    bool names_rows;       // the child's slots lack the rows' addresses
    MinimalTuple current;  // tuple whose values the slot shows; null: the child's row
    // Since the last rescan:
    bool begun;
    bool flows;       // rows are returned as soon as no nearer row can come
    bool ended;       // the child returns no further row
    bool bounded;     // `bound` is known
    double bound;     // rows beyond it do not pass; NaN: no row passes
    int64 wanted;     // rows to collect before rows are returned
    uint32 search;    // number of the search of the last row
    double frontier;  // distance that this search has reached
};

KnnFilterState* state_of(CustomScanState* node)
{
    return reinterpret_cast<KnnFilterState*>(node);
}

// Make the node's slot of the kind of the child's slots, so that it can show these as they are: only the columns that
// are read are deformed. Expressions that were compiled for other slots are compiled again.
void use_child_slots(KnnFilterState* state, EState* executor)
{
    ::ScanState& scan = state->custom.ss;
    bool all_alike = false;
    const TupleTableSlotOps* kind = ExecGetResultSlotOps(state->child, &all_alike);
    state->takes_slots = all_alike;
    state->names_rows = true;
    if (all_alike && kind != scan.ss_ScanTupleSlot->tts_ops) {
#if PG_VERSION_NUM >= 190000
        ExecInitScanTupleSlot(executor, &scan, ExecGetResultType(state->child), kind, 0);
#else
        ExecInitScanTupleSlot(executor, &scan, ExecGetResultType(state->child), kind);
#endif
        scan.ps.subPlan = NIL;
        ExecAssignScanProjectionInfoWithVarno(&scan, INDEX_VAR);
        scan.ps.qual = ExecInitQual(scan.ps.plan->qual, &scan.ps);
        // A scan that does not project returns the slot of the table's row, with the row's address.
        state->names_rows = !IsA(state->child, IndexScanState) || state->child->ps_ProjInfo != nullptr;
    }
    state->slot = scan.ss_ScanTupleSlot;
}

void begin(CustomScanState* node, EState* executor, int flags)
{
    KnnFilterState* state = state_of(node);
    auto* scan = castNode(CustomScan, node->ss.ps.plan);
    state->child = ExecInitNode(static_cast<Plan*>(linitial(scan->custom_plans)), executor, flags);
    node->custom_ps = list_make1(state->child);
    use_child_slots(state, executor);
    // WHERE CURRENT OF reads the relation from this node.
    node->ss.ss_currentRelation = reinterpret_cast<::ScanState*>(state->child)->ss_currentRelation;
    const KnnFilterPlan plan = read_knn_filter_plan(scan);
    state->scan.filter = &node->ss.ps;
    state->scan.pass_rate = state->pass_rate = plan.pass_rate;
    state->rate_among = plan.rate_among;
    if (plan.bitmap != nullptr) {
        state->bitmap = begin_knn_bitmap(plan.bitmap, executor, flags);
        node->custom_ps = lappend(node->custom_ps, plan_of_knn_bitmap(state->bitmap));
    }
    state->ends_at_null = plan.ends_at_null;
    state->passes_all = scan->methods == &knn_order_scan_methods;
    state->leading = plan.leading;
    state->bounds = begin_filter_bounds(plan, &node->ss.ps);
    state->held.context = AllocSetContextCreate(executor->es_query_cxt, "KnnFilter", ALLOCSET_DEFAULT_SIZES);
}

bool order_is_relaxed()
{
    return setting_iterative == static_cast<int>(IterativeSetting::relaxed);
}

// From now on, return held and new rows in order.
void let_flow(KnnFilterState* state)
{
    state->flows = true;
    state->scan.merges = false;
    // Without bounds, descriptions only tell which rows may go out before which held ones.
    if (state->held.count == 0 && state->bounds.plain == NIL && !state->ends_at_null) state->scan.described = false;
}

// The child has no further row; return the held rows.
void end_rows(KnnFilterState* state)
{
    state->ended = true;
    let_flow(state);
}

// Make the scan search among the rows of the bitmap.
void take_bitmap(KnnFilterState* state)
{
    state->scan.tids = tids_of_knn_bitmap(state->bitmap);
    state->scan.pass_rate = state->pass_rate;
    if (state->scan.tids == nullptr) return;
    const double expected = expected_share(state->bitmap, state->custom.ss.ss_currentRelation);
    state->scan.pass_rate = Max(state->pass_rate, state->rate_among * expected);
    if (state->scan.tids->page_count == 0) end_rows(state);
}

void begin_rows(KnnFilterState* state)
{
    state->begun = true;
    if (state->passes_all) {
        state->flows = true;
        return;
    }
    state->bound = find_bound(state->bounds, state->custom.ss.ps.ps_ExprContext);
    state->bounded = true;
    state->scan.bounded = state->bounds.plain != NIL;
    state->scan.within = state->bound;
    state->wanted = limit_hint_rows(state->hint);
    state->flows = false;
    state->scan.merges = true;
    state->scan.described = true;
    state->frontier = lowest;
    if (state->wanted == 0 || order_is_relaxed()) let_flow(state);
    if (std::isnan(state->bound)) {
        end_rows(state);
    } else if (state->bitmap != nullptr) {
        take_bitmap(state);
    }
}

// Whether the present row, and so all rows after it, are beyond the bound, or NULL where no NULL passes. Uses the
// scan's knowledge of the distance: no condition is evaluated for a row before its turn.
bool is_beyond_bound(KnnFilterState* state)
{
    const ScannedRow& row = state->scan.row;
    if (row.known && row.null_key) return state->ends_at_null;
    if (state->bounds.plain == NIL || !row.known || order_is_relaxed()) return false;
    if (!state->bounded) state->bound = find_bound(state->bounds, state->custom.ss.ps.ps_ExprContext);
    state->bounded = true;
    if (std::isnan(state->bound)) return true;
    if (row.unordered) return false;
    if (std::isinf(row.value)) return row.value > state->bound;
    return row.value > state->bound + distance_rounding * Max(std::fabs(row.value), std::fabs(state->bound));
}

// The same for bounds of expressions around the distance.
Beyond find_beyond_around(const KnnFilterState* state)
{
    const ScannedRow& row = state->scan.row;
    if (state->bounds.around == NIL || !row.known || row.unordered || std::isinf(row.value) || order_is_relaxed())
        return Beyond::no;
    const double distance = row.value - distance_rounding * Max(1.0, std::fabs(row.value));
    return find_beyond(state->bounds, state->custom.ss.ps.ps_ExprContext, distance);
}

// Replace the bounds of held rows by exact distances: rows of another search may come between them.
void settle_held(KnnFilterState* state)
{
    for (uint32 i = 0; i < state->held.count; ++i) {
        HeldRow& row = state->held.rows[i];
        scanned_row_distance(state->scan.scan, row.tid, &row.distance);
    }
    reorder_held(&state->held);
}

// Note the distance and the search that the scan has reached.
void follow_scan(KnnFilterState* state)
{
    const ScannedRow& row = state->scan.row;
    if (!row.known) {
        let_flow(state);
        return;
    }
    if (row.search != state->search) {
        settle_held(state);
        state->search = row.search;
        state->frontier = lowest;
    }
    state->frontier = Max(state->frontier, row.value);
    if (row.in_order || row.enough) let_flow(state);
}

// Returns the row's address in the table.
ItemPointer row_address(const KnnFilterState* state)
{
    if (IsA(state->child, IndexOnlyScanState)) {
        return &castNode(IndexOnlyScanState, state->child)->ioss_ScanDesc->xs_heaptid;
    }
    return &reinterpret_cast<::ScanState*>(state->child)->ss_ScanTupleSlot->tts_tid;
}

void name_row(KnnFilterState* state, ItemPointer address)
{
    TupleTableSlot* slot = state->custom.ss.ss_ScanTupleSlot;
    slot->tts_tid = *address;
    slot->tts_tableOid = RelationGetRelid(state->custom.ss.ss_currentRelation);
}

void forget_current(KnnFilterState* state)
{
    state->custom.ss.ss_ScanTupleSlot = state->slot;
    ExecClearTuple(state->slot);
    if (state->current != nullptr) pfree(state->current);
    state->current = nullptr;
}

// Make the node show the child's row, which is valid until the child's next row.
void show_child_row(KnnFilterState* state, TupleTableSlot* from)
{
    if (state->takes_slots) {
        if (state->current != nullptr) forget_current(state);
        state->custom.ss.ss_ScanTupleSlot = from;
        return;
    }
    TupleTableSlot* slot = state->slot;
    forget_current(state);
    slot_getallattrs(from);
    const auto columns = static_cast<Size>(slot->tts_tupleDescriptor->natts);
    memcpy(slot->tts_values, from->tts_values, sizeof(Datum) * columns);
    memcpy(slot->tts_isnull, from->tts_isnull, sizeof(bool) * columns);
    ExecStoreVirtualTuple(slot);
}

void show_held_row(KnnFilterState* state, HeldRow row)
{
    forget_current(state);
    ExecForceStoreMinimalTuple(row.tuple, state->slot, false);
    state->current = row.tuple;
    name_row(state, &row.address);
}

TupleTableSlot* project(CustomScanState* node)
{
    if (node->ss.ps.ps_ProjInfo == nullptr) return node->ss.ss_ScanTupleSlot;
    node->ss.ps.ps_ExprContext->ecxt_scantuple = node->ss.ss_ScanTupleSlot;
    return ExecProject(node->ss.ps.ps_ProjInfo);
}

// Whether the scan described the present row as one that comes before the nearest.
bool is_leading(const KnnFilterState* state)
{
    return state->scan.row.known && state->scan.row.leading;
}

// Fetches the next row that passes into the node's slot; false at the end.
bool next_passing(KnnFilterState* state)
{
    CustomScanState* node = &state->custom;
    ExprContext* context = node->ss.ps.ps_ExprContext;
    state->scan.row.known = false;
    TupleTableSlot* row = ExecProcNode(state->child);
    const bool follows = state->scan.described && !is_leading(state);
    if (TupIsNull(row) || (follows && is_beyond_bound(state))) {
        end_rows(state);
        return false;
    }
    const Beyond beyond = follows ? find_beyond_around(state) : Beyond::no;
    if (beyond == Beyond::all) end_rows(state);
    if (beyond == Beyond::distances) skip_placed_rows(state->scan.scan);
    if (beyond != Beyond::no) return false;
    if (follows) follow_scan(state);
    ResetExprContext(context);
    show_child_row(state, row);
    context->ecxt_scantuple = node->ss.ss_ScanTupleSlot;
    if (!ExecQual(node->ss.ps.qual, context)) {
        InstrCountFiltered1(node, 1);
        return false;
    }
    state->scan.passed++;
    return true;
}

// Hold the node's row back. Rows of the first search come in order, so it needs no exact distances.
void hold(KnnFilterState* state)
{
    const ScannedRow& row = state->scan.row;
    double distance = state->frontier;
    if (row.search > 1 && !row.unordered) {
        distance = row.value;
        if (row.value < row.upper) scanned_row_distance(state->scan.scan, row.tid, &distance);
    }
    hold_row(&state->held, state->custom.ss.ss_ScanTupleSlot, row_address(state), row.tid, distance);
    const bool enough = row.confirmed && state->held.count >= state->wanted &&
                        count_within(state->held, state->frontier) >= state->wanted;
    const bool too_large = state->held.bytes > static_cast<Size>(work_mem) * 1024;
    if (enough || too_large) let_flow(state);
}

// Whether no further row can come before the nearest held row.
bool may_go_out(const KnnFilterState* state)
{
    if (state->held.count == 0 || !state->flows) return false;
    return state->ended || state->held.rows[0].distance <= state->frontier;
}

// EvalPlanQual: the child returns a changed row in place of its own, and it is filtered again.
TupleTableSlot* recheck(CustomScanState* node)
{
    KnnFilterState* state = state_of(node);
    while (!state->ended) {
        if (next_passing(state)) return project(node);
    }
    return nullptr;
}

TupleTableSlot* execute(CustomScanState* node)
{
    KnnFilterState* state = state_of(node);
    if (!state->led && leads(state->leading)) lead_scan(state->child, state->leading);
    state->led = true;
    if (node->ss.ps.state->es_epq_active != nullptr) return recheck(node);
    if (!state->begun) begin_rows(state);
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        if (may_go_out(state)) {
            ResetExprContext(node->ss.ps.ps_ExprContext);
            show_held_row(state, take_nearest(&state->held));
            return project(node);
        }
        if (state->ended) break;
        if (!next_passing(state)) continue;
        if (is_leading(state)) state->wanted--;
        if (is_leading(state) || (state->flows && state->held.count == 0)) {
            if (state->names_rows) name_row(state, row_address(state));
            return project(node);
        }
        hold(state);
    }
    forget_current(state);
    return nullptr;
}

void forget_rows(KnnFilterState* state)
{
    forget_current(state);
    drop_held(&state->held);
    state->begun = state->flows = state->ended = state->bounded = false;
    state->search = 0;
    state->scan.passed = 0;
    state->scan.row = {};
    state->scan.tids = nullptr;
}

void end(CustomScanState* node)
{
    forget_rows(state_of(node));
    ExecEndNode(state_of(node)->child);
    if (state_of(node)->bitmap != nullptr) end_knn_bitmap(state_of(node)->bitmap);
}

void rescan(CustomScanState* node)
{
    KnnFilterState* state = state_of(node);
    forget_rows(state);
    if (node->ss.ps.chgParam != nullptr) UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
    if (state->child->chgParam == nullptr) ExecReScan(state->child);
    if (state->bitmap != nullptr) rescan_knn_bitmap(state->bitmap, node->ss.ps.chgParam);
}

// Show the rows that come first in EXPLAIN.
void explain_leading(const Leading& leading, ExplainState* explanation)
{
    if (!leads(leading)) return;
    const char* first = leading.nulls ? (leading.nans ? "NULL, NaN" : "NULL") : "NaN";
    ExplainPropertyText("First", first, explanation);
}

// Show the bounds too; PostgreSQL shows the filter.
void explain(CustomScanState* node, List* ancestors, ExplainState* explanation)
{
    const auto* scan = castNode(CustomScan, node->ss.ps.plan);
    const KnnFilterState* state = state_of(node);
    explain_leading(state->leading, explanation);
    if (explanation->analyze && !state->passes_all) {
        if (state->bitmap != nullptr) explain_knn_bitmap(state->bitmap, explanation);
        explain_keys(state->scan.keyed, state->bitmap != nullptr, explanation);
    }
    if (scan->custom_exprs == NIL) return;
    List* context = set_deparse_context_plan(explanation->deparse_cxt, node->ss.ps.plan, ancestors);
    const bool prefix = list_length(explanation->rtable) > 1 || explanation->verbose;
    Node* bounds = reinterpret_cast<Node*>(make_ands_explicit(scan->custom_exprs));
    ExplainPropertyText("While", deparse_expression(bounds, context, prefix, false), explanation);
}

// The name that EXPLAIN shows is the plan's.
const CustomExecMethods execution_methods = make_custom_methods({"KnnFilter", begin, execute, end, rescan, explain});

Node* create_state(CustomScan*)
{
    return make_custom_state<KnnFilterState>(&execution_methods);
}

}  // namespace

const CustomScanMethods knn_filter_scan_methods = {"KnnFilter", create_state};
const CustomScanMethods knn_order_scan_methods = {"KnnOrder", create_state};

bool is_knn_filter(const PlanState* node)
{
    return IsA(node, CustomScanState) && reinterpret_cast<const CustomScanState*>(node)->methods == &execution_methods;
}

PlanState* scan_below_knn_filter(const PlanState* node)
{
    return static_cast<PlanState*>(linitial(reinterpret_cast<const CustomScanState*>(node)->custom_ps));
}

bool has_knn_bitmap(const PlanState* node)
{
    return list_length(reinterpret_cast<const CustomScanState*>(node)->custom_ps) > 1;
}

void limit_knn_filter(PlanState* node, LimitHint* hint)
{
    KnnFilterState* state = state_of(castNode(CustomScanState, node));
    hint->leading = state->leading;
    if (state->passes_all) return;
    state->hint = *hint;
    hint->filtered = true;
    hint->filter = &state->scan;
    if (has_knn_bitmap(node)) hint->partitions = nullptr;
    if (state->bounds.plain != NIL) hint->reading = Reading::some;
}

}  // namespace pgwarp
