// The planner's side of KnnFilter: puts it in place of each ordered path of a pgwarp index that has a filter.
#include "postgres/planner/knn_filter_path.h"

#include "postgres/am/around_bound.h"
#include "postgres/am/cost.h"
#include "postgres/am/distance_bound.h"
#include "postgres/am/index_options.h"
#include "postgres/am/methods.h"
#include "postgres/executor/knn_filter.h"
#include "postgres/executor/knn_filter_plan.h"
#include "postgres/expression_walk.h"
#include "postgres/planner/bound_selectivity.h"
#include "postgres/planner/custom_path.h"
#include "postgres/planner/distance_order.h"

extern "C" {
#include "access/htup_details.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

// The cost of a search that takes a bound as a share of that of one without a bound.
constexpr double bounded_search = 0.05;
constexpr double widest_whole = 2;  // times the bytes of the columns that are needed

set_rel_pathlist_hook_type filter_previous_hook = nullptr;

// Whether a clause is false for the last rows of the scan only: a bound of the distance or IS NOT NULL of the key.
bool drops_last_rows(PlannerInfo* root, const RelOptInfo* rel, const RestrictInfo* info, const Node* distance)
{
    return bounds_distance(root, rel->relid, info, distance) || is_key_not_null(info, distance);
}

// Whether such a clause may end the scan. The number of rows read then depends on distances of rows that other clauses
// may hide, so PostgreSQL's rule for index conditions applies.
bool may_end_scan(PlannerInfo* root, RelOptInfo* rel, RestrictInfo* info, const Node* distance)
{
    return drops_last_rows(root, rel, info, distance) && restriction_is_securely_promotable(info, rel);
}

// The same for a bound of an expression around the distance, which ends the rows that have one.
AroundBound around_bound(PlannerInfo* root, RelOptInfo* rel, RestrictInfo* info, const Node* distance)
{
    const AroundBound bound = find_around_bound(root, rel->relid, info, distance);
    return bound.found && restriction_is_securely_promotable(info, rel) ? bound : AroundBound{};
}

Node* distance_of(const IndexPath* path)
{
    return static_cast<Node*>(linitial(path->indexorderbys));
}

// Whether the scan of the index evaluates a clause, or no scan does.
bool is_evaluated_below(const IndexPath* path, RestrictInfo* clause)
{
    return clause->pseudoconstant || is_redundant_with_indexclauses(clause, path->indexclauses);
}

// The clauses that a scan of the index would filter by.
List* filter_clauses(const IndexPath* path)
{
    List* clauses = list_copy(path->indexinfo->indrestrictinfo);
    if (path->path.param_info != nullptr) {
        clauses = list_concat(clauses, list_copy(path->path.param_info->ppi_clauses));
    }
    List* filters = NIL;
    ListCell* cell;
    foreach (cell, clauses) {
        if (!is_evaluated_below(path, lfirst_node(RestrictInfo, cell))) filters = lappend(filters, lfirst(cell));
    }
    list_free(clauses);
    return filters;
}

// Collects the relation's columns in expressions; the distance counts as a column if the scan returns it. Columns of an
// outer relation are parameters of the nested loop.
struct NeededColumns {
    Index relation;
    PathTarget* target;
    Node* distance;  // null: the scan does not return it
};

bool add_columns(Node* node, void* context)
{
    auto* needed = static_cast<NeededColumns*>(context);
    if (node == nullptr) return false;
    if (needed->distance != nullptr && equal(node, needed->distance)) return false;
    if (IsA(node, Var)) {
        const auto* column = castNode(Var, node);
        if (column->varlevelsup == 0 && static_cast<Index>(column->varno) == needed->relation)
            add_new_column_to_pathtarget(needed->target, reinterpret_cast<Expr*>(node));
        return false;
    }
    return walk_expression(node, add_columns, context);
}

// The target list of the scan: the path's columns, and those that the filter reads.
PathTarget* target_with_columns(PlannerInfo* root, const IndexPath* path, List* clauses)
{
    Node* distance = path->path.pathtype == T_IndexOnlyScan ? distance_of(path) : nullptr;
    NeededColumns needed = {path->path.parent->relid, copy_pathtarget(path->path.pathtarget), distance};
    ListCell* cell;
    foreach (cell, clauses) add_columns(reinterpret_cast<Node*>(lfirst_node(RestrictInfo, cell)->clause), &needed);
    return set_pathtarget_cost_width(root, needed.target);
}

// The same index path, without a filter.
IndexPath* without_filter(PlannerInfo* root, const IndexPath* path, List* clauses)
{
    auto* info = static_cast<IndexOptInfo*>(palloc(sizeof(IndexOptInfo)));
    memcpy(info, path->indexinfo, sizeof(IndexOptInfo));
    info->indrestrictinfo = NIL;
    auto* copy = static_cast<IndexPath*>(palloc(sizeof(IndexPath)));
    memcpy(copy, path, sizeof(IndexPath));
    copy->indexinfo = info;
    copy->path.rows =
        clamp_row_est(path->indexclauses == NIL ? info->tuples : path->indexselectivity * info->rel->tuples);
    copy->path.pathtarget = target_with_columns(root, path, clauses);
    if (copy->path.param_info != nullptr && copy->path.param_info->ppi_clauses != NIL) {
        auto* parameters = static_cast<ParamPathInfo*>(palloc(sizeof(ParamPathInfo)));
        memcpy(parameters, copy->path.param_info, sizeof(ParamPathInfo));
        parameters->ppi_clauses = NIL;
        copy->path.param_info = parameters;
    }
    return copy;
}

// Returns a path that joins no single partition. A path for rows of a partitioned table also serves for those of each
// of its partitions: PostgreSQL then replaces the table's columns in the index's conditions, but not in its order
// (reparameterize_path_by_child). It replaces nothing below a projection, and rejects the path. The plan is the same.
Path* for_whole_outer(IndexPath* path)
{
    if (bms_is_empty(PATH_REQ_OUTER(&path->path))) return &path->path;
    auto* projection = makeNode(ProjectionPath);
    projection->path = path->path;
    projection->path.type = T_ProjectionPath;
    projection->path.pathtype = T_Result;
    projection->subpath = &path->path;
    projection->dummypp = true;
    return &projection->path;
}

Plan* plan_knn_filter(PlannerInfo* root, RelOptInfo* rel, CustomPath* path, List* targets, List* clauses, List* plans);

const CustomPathMethods filter_path_methods = {"KnnFilter", plan_knn_filter, nullptr};

// The exponent makes PostgreSQL read the value back as a Float, even where it is 1.
Float* make_rate(double rate)
{
    return makeFloat(psprintf("%.9e", rate));
}

// Rows come nearest first, and rows beyond the bound are never read: so the share of rows that pass refers to rows
// within the bound.
CustomPath* make_filter_path(PlannerInfo* root, RelOptInfo* rel, const IndexPath* path, List* clauses,
                             const KeyOrder& order)
{
    List* bounds = NIL;
    List* around = NIL;
    List* others = NIL;
    ListCell* cell;
    foreach (cell, clauses) {
        auto* clause = lfirst_node(RestrictInfo, cell);
        if (around_bound(root, rel, clause, distance_of(path)).found) {
            around = lappend(around, clause);
        } else if (!drops_last_rows(root, rel, clause, distance_of(path))) {
            others = lappend(others, clause);
        } else if (bounds_distance(root, rel->relid, clause, distance_of(path)) &&
                   may_end_scan(root, rel, clause, distance_of(path))) {
            bounds = lappend(bounds, clause);
        }
    }
    Selectivity within = clauselist_selectivity(root, bounds, 0, JOIN_INNER, nullptr);
    Cost search = path->path.startup_cost;
    if (bounds != NIL && searches_within(path->indexinfo)) {
        if (within < 1) within = Min(within, usual_within);
        search = Min(search, round_trip_cost + search * bounded_search);
    }
    within *= clauselist_selectivity(root, around, 0, JOIN_INNER, nullptr);
    const Selectivity passing = clauselist_selectivity(root, others, 0, JOIN_INNER, nullptr);
    IndexPath* scan = without_filter(root, path, clauses);
    if (!order.own) scan->path.pathkeys = list_make1(make_own_key(path->indexinfo, order.distance));
    CustomPath* made = make_custom_path(for_whole_outer(scan), &filter_path_methods);
    made->path.pathkeys = path->path.pathkeys;
    made->path.pathtarget = path->path.pathtarget;
    made->path.param_info = path->path.param_info;
    made->path.rows = path->path.rows;
    // Rows beyond a bound are never read, but the number of rows within it is seldom known. With the planner's guess
    // the index is cheaper than a sequential scan, which is right for the usual bounds.
    const Cost rest = path->path.total_cost - path->path.startup_cost;
    made->path.startup_cost = search;
    made->path.total_cost = search + rest * Min(1.0, Max(0.0, within));
    // A clause that the index's predicate implies is no filter of its scan.
    List* implied = list_difference_ptr(rel->baserestrictinfo, path->indexinfo->indrestrictinfo);
    made->custom_private = list_make4(make_rate(passing), implied, bounds, leading_private(order.leading));
    return made;
}

// Returns the path of the scan below a KnnFilter.
Path* scan_path(const CustomPath* path)
{
    auto* below = static_cast<Path*>(linitial(path->custom_paths));
    return IsA(below, ProjectionPath) ? reinterpret_cast<ProjectionPath*>(below)->subpath : below;
}

// Returns the scan's plan, and the plan that makes the bitmap, without the heap scan above it.
List* plans_below(List* plans)
{
    if (list_length(plans) == 1) return plans;
    auto* bitmap = static_cast<Plan*>(lsecond(plans));
    while (!IsA(bitmap, BitmapHeapScan)) bitmap = outerPlan(bitmap);  // below a Result with constant conditions
    return list_make2(linitial(plans), outerPlan(bitmap));
}

// Whether each target is a column of the table.
bool are_columns(List* targets, Index relation)
{
    ListCell* cell;
    foreach (cell, targets) {
        const auto* column = reinterpret_cast<Var*>(lfirst_node(TargetEntry, cell)->expr);
        if (!IsA(column, Var) || static_cast<Index>(column->varno) != relation || column->varattno <= 0) return false;
    }
    return true;
}

// Make the scan of the index return the table's rows as they are, which spares it a projection. The filter may hold
// rows back: so not where the rows are much wider than the columns that are needed.
void return_whole_rows(PlannerInfo* root, RelOptInfo* rel, Plan* plan)
{
    if (!IsA(plan, IndexScan) || !are_columns(plan->targetlist, rel->relid)) return;
    const double row_bytes = static_cast<double>(rel->pages) * BLCKSZ / Max(1.0, rel->tuples);
    const double width = row_bytes - MAXALIGN(SizeofHeapTupleHeader) - sizeof(ItemIdData);
    if (width > widest_whole * Max(1, plan->plan_width)) return;
    List* columns = build_physical_tlist(root, rel);
    if (columns != NIL) plan->targetlist = columns;
}

Plan* plan_knn_filter(PlannerInfo* root, RelOptInfo* rel, CustomPath* path, List* targets, List* clauses, List* plans)
{
    return_whole_rows(root, rel, static_cast<Plan*>(linitial(plans)));
    const auto* index = reinterpret_cast<const IndexPath*>(scan_path(path));
    List* filters = NIL;
    List* bounds = NIL;
    List* around = NIL;
    List* kinds = NIL;
    ListCell* cell;
    foreach (cell, clauses) {
        auto* clause = lfirst_node(RestrictInfo, cell);
        if (is_evaluated_below(index, clause) ||
            list_member_ptr(static_cast<List*>(lsecond(path->custom_private)), clause))
            continue;
        filters = lappend(filters, clause->clause);
        if (may_end_scan(root, rel, clause, distance_of(index))) bounds = lappend(bounds, clause->clause);
        const AroundBound bound = around_bound(root, rel, clause, distance_of(index));
        if (!bound.found) continue;
        around = lappend(around, clause->clause);
        kinds = lappend_int(kinds, around_bound_private(bound));
    }
    bounds = list_concat(bounds, around);
    List* settings = list_make3(linitial(path->custom_private), lfourth(path->custom_private), kinds);
    const bool has_bitmap = list_length(plans) > 1;
    if (has_bitmap) settings = lappend(settings, list_nth(path->custom_private, 4));
    const bool filtered = filters != NIL || has_bitmap;
    Plan* plan = make_custom_plan(path, targets, plans_below(plans), static_cast<List*>(copyObjectImpl(bounds)),
                                  settings, filtered ? &knn_filter_scan_methods : &knn_order_scan_methods);
    plan->qual = filters;
    return plan;
}

void replace_paths(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry)
{
    if (filter_previous_hook != nullptr) filter_previous_hook(root, rel, number, entry);
    if (entry->rtekind != RTE_RELATION) return;
    ListCell* cell;
    foreach (cell, rel->pathlist) lfirst(cell) = with_knn_filter(root, rel, static_cast<Path*>(lfirst(cell)));
}

}  // namespace

bool searches_within(const IndexOptInfo* info, Metric* metric)
{
    Relation index = index_open(info->indexoid, NoLock);
    const bool within = takes_bound(index);
    if (within && metric != nullptr) *metric = index_metric(index);
    index_close(index, NoLock);
    return within;
}

Path* with_knn_filter(PlannerInfo* root, RelOptInfo* rel, Path* path)
{
    if (!IsA(path, IndexPath)) return path;
    const auto* index = reinterpret_cast<const IndexPath*>(path);
    if (list_length(index->indexorderbys) != 1 || find_access_method(index->indexinfo) == nullptr) return path;
    List* clauses = filter_clauses(index);
    const KeyOrder order = read_key_order(root, index);
    return clauses == NIL && order.own ? path : &make_filter_path(root, rel, index, clauses, order)->path;
}

Path* path_below_knn_filter(const Path* path)
{
    if (!IsA(path, CustomPath)) return nullptr;
    const auto* custom = reinterpret_cast<const CustomPath*>(path);
    if (custom->methods != &filter_path_methods || list_length(custom->custom_paths) != 1) return nullptr;
    return scan_path(custom);
}

CustomPath* with_bitmap(const Path* filter, BitmapHeapPath* bitmap, double share)
{
    const auto* custom = reinterpret_cast<const CustomPath*>(filter);
    auto* made = static_cast<CustomPath*>(palloc(sizeof(CustomPath)));
    memcpy(made, custom, sizeof(CustomPath));
    made->custom_paths = list_make2(linitial(custom->custom_paths), bitmap);
    const double passing = floatVal(linitial(custom->custom_private));
    made->custom_private = lappend(list_copy(custom->custom_private), make_rate(Min(1.0, passing / Max(share, 1e-9))));
    return made;
}

List* bounds_of_knn_filter(const Path* path)
{
    return static_cast<List*>(lthird(reinterpret_cast<const CustomPath*>(path)->custom_private));
}

void init_knn_filter()
{
    RegisterCustomScanMethods(&knn_filter_scan_methods);
    RegisterCustomScanMethods(&knn_order_scan_methods);
    filter_previous_hook = set_rel_pathlist_hook;
    set_rel_pathlist_hook = replace_paths;
}

}  // namespace pgwarp
