#include "postgres/executor/distance_stop.h"

#include "postgres/access/methods.h"
#include "postgres/executor/custom_scan.h"
#include "postgres/settings.h"

extern "C" {
#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
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

set_rel_pathlist_hook_type previous_hook = nullptr;

struct DistanceStopState {
    CustomScanState custom;
    PlanState* child;
    ExprState* within;  // the bound, over the child's row
    bool ended;
};

DistanceStopState* state_of(CustomScanState* node)
{
    return reinterpret_cast<DistanceStopState*>(node);
}

void begin(CustomScanState* node, EState* executor, int flags)
{
    DistanceStopState* state = state_of(node);
    auto* scan = castNode(CustomScan, node->ss.ps.plan);
    state->child = ExecInitNode(static_cast<Plan*>(linitial(scan->custom_plans)), executor, flags);
    node->custom_ps = list_make1(state->child);
    // The child's slots are read as they are.
    node->ss.ps.scanops = ExecGetResultSlotOps(state->child, &node->ss.ps.scanopsfixed);
    node->ss.ps.scanopsset = true;
    ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
    state->within = ExecInitQual(scan->custom_exprs, &node->ss.ps);
}

// Whether rows may come after farther ones: then those that are too far are only left out.
bool order_is_relaxed()
{
    return setting_iterative == static_cast<int>(IterativeSetting::relaxed);
}

// Hand on the child's rows until one is too far.
TupleTableSlot* execute(CustomScanState* node)
{
    DistanceStopState* state = state_of(node);
    ExprContext* context = node->ss.ps.ps_ExprContext;
    while (!state->ended) {
        CHECK_FOR_INTERRUPTS();
        TupleTableSlot* slot = ExecProcNode(state->child);
        if (TupIsNull(slot)) return nullptr;
        ResetExprContext(context);
        context->ecxt_scantuple = slot;
        if (ExecQual(state->within, context)) {
            return node->ss.ps.ps_ProjInfo != nullptr ? ExecProject(node->ss.ps.ps_ProjInfo) : slot;
        }
        state->ended = !order_is_relaxed();
    }
    return nullptr;
}

void end(CustomScanState* node)
{
    ExecEndNode(state_of(node)->child);
}

void rescan(CustomScanState* node)
{
    DistanceStopState* state = state_of(node);
    state->ended = false;
    if (node->ss.ps.chgParam != nullptr) UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
    if (state->child->chgParam == nullptr) ExecReScan(state->child);
}

// Show the bound.
void explain(CustomScanState* node, List* ancestors, ExplainState* explanation)
{
    const Plan* plan = node->ss.ps.plan;
    List* context = set_deparse_context_plan(explanation->deparse_cxt, const_cast<Plan*>(plan), ancestors);
    const bool prefix = list_length(explanation->rtable) > 1 || explanation->verbose;
    Node* bound = static_cast<Node*>(linitial(castNode(CustomScan, plan)->custom_exprs));
    ExplainPropertyText("While", deparse_expression(bound, context, prefix, false), explanation);
}

CustomExecMethods make_methods()
{
    CustomExecMethods methods = {};
    methods.CustomName = "DistanceStop";
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
    return make_custom_state<DistanceStopState>(&execution_methods);
}

const CustomScanMethods scan_methods = {"DistanceStop", create_state};

Plan* plan_distance_stop(PlannerInfo*, RelOptInfo*, CustomPath* path, List* targets, List*, List* plans)
{
    return make_custom_plan(path, targets, plans, path->custom_private, NIL, &scan_methods);
}

const CustomPathMethods path_methods = {"DistanceStop", plan_distance_stop, nullptr};

// Whether a clause keeps the rows whose distance, the very one that the index orders by, is below something constant.
bool bounds_distance(const RestrictInfo* info, Node* distance)
{
    if (info->pseudoconstant || !IsA(info->clause, OpExpr)) return false;
    const auto* comparison = castNode(OpExpr, info->clause);
    if (list_length(comparison->args) != 2) return false;
    const Oid function = comparison->opfuncid != InvalidOid ? comparison->opfuncid : get_opcode(comparison->opno);
    const bool below =
        function == F_FLOAT8LT || function == F_FLOAT8LE || function == F_FLOAT84LT || function == F_FLOAT84LE;
    const bool above =
        function == F_FLOAT8GT || function == F_FLOAT8GE || function == F_FLOAT48GT || function == F_FLOAT48GE;
    if (!below && !above) return false;
    Node* left = static_cast<Node*>(linitial(comparison->args));
    Node* right = static_cast<Node*>(lsecond(comparison->args));
    Node* bound = below ? right : left;
    return equal(below ? left : right, distance) && !contain_var_clause(bound) && !contain_volatile_functions(bound);
}

// The same index path, without the clause as a filter.
IndexPath* without_filter(const IndexPath* path, const RestrictInfo* clause)
{
    auto* info = static_cast<IndexOptInfo*>(palloc(sizeof(IndexOptInfo)));
    memcpy(info, path->indexinfo, sizeof(IndexOptInfo));
    info->indrestrictinfo = list_delete_ptr(list_copy(info->indrestrictinfo), const_cast<RestrictInfo*>(clause));
    auto* copy = static_cast<IndexPath*>(palloc(sizeof(IndexPath)));
    memcpy(copy, path, sizeof(IndexPath));
    copy->indexinfo = info;
    return copy;
}

CustomPath* make_stop_path(PlannerInfo* root, const IndexPath* path, RestrictInfo* clause)
{
    IndexPath* child = without_filter(path, clause);
    CustomPath* stop = make_custom_path(&child->path, &path_methods);
    const Selectivity kept = clause_selectivity(root, reinterpret_cast<Node*>(clause), 0, JOIN_INNER, nullptr);
    const Cost rest = path->path.total_cost - path->path.startup_cost;
    stop->path.total_cost = path->path.startup_cost + rest * Min(1.0, Max(0.0, kept));
    stop->custom_private = list_make1(clause->clause);
    return stop;
}

// Whether the path's target has the column that the distance is of: above the scan nothing else is there.
bool gives_column(const Path* path, Node* distance)
{
    List* columns = pull_var_clause(distance, 0);
    ListCell* cell;
    foreach (cell, columns) {
        if (!list_member(path->pathtarget->exprs, lfirst(cell)) && !list_member(path->pathtarget->exprs, distance)) {
            return false;
        }
    }
    return true;
}

bool is_ours(const IndexPath* path)
{
    if (list_length(path->indexorderbys) != 1) return false;
    Relation index = index_open(path->indexinfo->indexoid, NoLock);
    const bool ours = find_access_method(index->rd_indam->amoptions) != nullptr;
    index_close(index, NoLock);
    return ours;
}

void add_stop_path(PlannerInfo* root, RelOptInfo* rel, const IndexPath* path)
{
    // An index-only scan has no value of the column.
    if (path->path.pathtype != T_IndexScan || !is_ours(path)) return;
    Node* distance = static_cast<Node*>(linitial(path->indexorderbys));
    if (!gives_column(&path->path, distance)) return;
    ListCell* cell;
    foreach (cell, rel->baserestrictinfo) {
        auto* clause = static_cast<RestrictInfo*>(lfirst(cell));
        if (!bounds_distance(clause, distance)) continue;
        add_path(rel, &make_stop_path(root, path, clause)->path);
        return;
    }
}

void add_relation_paths(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry)
{
    if (previous_hook != nullptr) previous_hook(root, rel, number, entry);
    if (entry->rtekind != RTE_RELATION || rel->baserestrictinfo == NIL) return;
    // Of the paths there, add_path() frees others than these.
    List* paths = NIL;
    ListCell* cell;
    foreach (cell, rel->pathlist) {
        if (IsA(lfirst(cell), IndexPath)) paths = lappend(paths, lfirst(cell));
    }
    foreach (cell, paths) add_stop_path(root, rel, static_cast<IndexPath*>(lfirst(cell)));
    list_free(paths);
}

}  // namespace

void init_distance_stop()
{
    RegisterCustomScanMethods(&scan_methods);
    previous_hook = set_rel_pathlist_hook;
    set_rel_pathlist_hook = add_relation_paths;
}

Path* path_below_distance_stop(Path* path)
{
    if (!IsA(path, CustomPath)) return nullptr;
    auto* custom = reinterpret_cast<CustomPath*>(path);
    return custom->methods == &path_methods ? static_cast<Path*>(linitial(custom->custom_paths)) : nullptr;
}

bool is_distance_stop(const PlanState* node)
{
    return IsA(node, CustomScanState) && reinterpret_cast<const CustomScanState*>(node)->methods == &execution_methods;
}

}  // namespace pgwarp
