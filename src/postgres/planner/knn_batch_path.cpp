// The planner's side of KnnBatch: recognises a lateral k-NN subquery over a pgwarp index, or a join by a bound of the
// distance, and adds, besides the plain nested loop, one that reads its outer side in batches.
#include "postgres/planner/knn_batch_path.h"

#include "postgres/am/distance_bound.h"
#include "postgres/am/methods.h"
#include "postgres/executor/evaluate_ahead.h"
#include "postgres/executor/knn_batch.h"
#include "postgres/executor/knn_batch_keys.h"
#include "postgres/executor/knn_batch_plan.h"
#include "postgres/expression_walk.h"
#include "postgres/planner/custom_path.h"
#include "postgres/planner/knn_filter_path.h"
#include "postgres/planner/knn_partitions_path.h"
#include "postgres/settings.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

set_join_pathlist_hook_type batch_previous_hook = nullptr;

// Recognised searches: scans of pgwarp indexes that share one query expression, below the LIMIT of a subquery or within
// a bound of the distance.
struct KnnSubquery {
    bool limited;
    bool filtered;
    Node* limit;
    Node* offset;
    Node* query;   // of the index scans, before its parameters are replaced
    Node* within;  // the largest distance of interest to all of them, likewise; null: there is none
    List* indexes;
    KnnBatchPlan keyed;  // the keys of the scans, the same for all, with their values before parameters are replaced
};

bool match_index(const IndexPath* path, Node* within, KnnSubquery* found)
{
    if (list_length(path->indexorderbys) != 1 || find_access_method(path->indexinfo) == nullptr) return false;
    KnnBatchPlan keyed = {};
    if (!add_batch_keys(path->indexclauses, &keyed)) return false;
    // Indexes of several partitions are searched by one request, with one predicate of each query.
    const bool alike = equal(keyed.keys, found->keyed.keys) && equal(keyed.values, found->keyed.values);
    if (found->indexes != NIL && !alike) return false;
    found->keyed = keyed;
    Node* order = static_cast<Node*>(linitial(path->indexorderbys));
    if (!IsA(order, OpExpr) || list_length(castNode(OpExpr, order)->args) != 2) return false;
    Node* query = static_cast<Node*>(lsecond(castNode(OpExpr, order)->args));
    if (found->query != nullptr && !equal(found->query, query)) return false;
    if (found->query == nullptr) found->within = within;
    if (!equal(found->within, within)) found->within = nullptr;
    found->query = query;
    found->indexes = lappend_oid(found->indexes, path->indexinfo->indexoid);
    if (path->path.parent->baserestrictinfo != NIL && path->indexclauses == NIL) found->filtered = true;
    return true;
}

bool match_path(Path* path, KnnSubquery* found);

void forget_limit(KnnSubquery* found)
{
    found->limited = false;
    found->limit = nullptr;
    found->offset = nullptr;
}

// Matches the index path below a KnnFilter. Of several bounds one will do. Where searches of the index take no bound,
// the scan asks for an answer without one.
bool match_filter(const Path* path, KnnSubquery* found)
{
    Path* below = path_below_knn_filter(path);
    if (below == nullptr || !IsA(below, IndexPath)) return false;
    UpperBound bound = {};
    ListCell* cell;
    foreach (cell, bounds_of_knn_filter(path)) {
        if (split_bound(lfirst_node(RestrictInfo, cell)->clause, &bound)) break;
    }
    if (!found->limited && bound.value == nullptr) return false;
    const auto* scan = reinterpret_cast<IndexPath*>(below);
    if (scan->indexclauses != NIL) found->filtered = true;
    return match_index(scan, searches_within(scan->indexinfo) ? bound.value : nullptr, found);
}

bool match_all(List* paths, KnnSubquery* found)
{
    ListCell* cell;
    foreach (cell, paths) {
        if (!match_path(static_cast<Path*>(lfirst(cell)), found)) return false;
    }
    return paths != NIL;
}

// Search below nodes that pass rows on: subqueries, LIMIT, projections, ordered unions of partitions.
bool match_path(Path* path, KnnSubquery* found)
{
    switch (nodeTag(path)) {
        case T_SubqueryScanPath:
            if (found->limited && path->parent->baserestrictinfo != NIL) found->filtered = true;
            return match_path(reinterpret_cast<SubqueryScanPath*>(path)->subpath, found);
        case T_ProjectionPath:
            return match_path(reinterpret_cast<ProjectionPath*>(path)->subpath, found);
        case T_LimitPath: {
            auto* limit = reinterpret_cast<LimitPath*>(path);
            found->limited = true;  // the lowest LIMIT counts, because it alone bounds the index scan
            found->limit = limit->limitCount;
            found->offset = limit->limitOffset;
            return match_path(limit->subpath, found);
        }
        case T_AggPath:
            forget_limit(found);  // a LIMIT above an aggregate does not bound its input
            return match_path(reinterpret_cast<AggPath*>(path)->subpath, found);
        case T_IncrementalSortPath:
            if (found->limited) found->filtered = true;  // it reads on to the next value of the sorted columns
            return match_path(reinterpret_cast<IncrementalSortPath*>(path)->spath.subpath, found);
        case T_SortPath:
            forget_limit(found);
            return match_path(reinterpret_cast<SortPath*>(path)->subpath, found);
        case T_MergeAppendPath:
            return match_all(reinterpret_cast<MergeAppendPath*>(path)->subpaths, found);
        case T_AppendPath:
            return match_all(reinterpret_cast<AppendPath*>(path)->subpaths, found);
        case T_CustomPath:
            if (Path* below = path_below_knn_partitions(path)) return match_path(below, found);
            return match_filter(path, found);
        case T_IndexPath:
            return found->limited && match_index(reinterpret_cast<IndexPath*>(path), nullptr, found);
        default:
            return false;
    }
}

// Replaces a subquery's parameters by the outer columns that set them.
struct OuterColumns {
    List* parameters;  // PlannerParamItem, of the subquery
    const RelOptInfo* outer;
    bool failed;
};

// Returns the column from the outer relation's target: its Var names the outer joins that may make it null.
Node* outer_column(const OuterColumns& columns, const Var* wanted)
{
    ListCell* given;
    foreach (given, columns.outer->reltarget->exprs) {
        auto* var = static_cast<Var*>(lfirst(given));
        if (IsA(var, Var) && var->varno == wanted->varno && var->varattno == wanted->varattno) {
            return static_cast<Node*>(copyObjectImpl(var));
        }
    }
    return nullptr;
}

// Returns the outer column that sets a parameter.
Node* parameter_column(const OuterColumns& columns, const Param* parameter)
{
    ListCell* cell;
    foreach (cell, columns.parameters) {
        const auto* item = static_cast<PlannerParamItem*>(lfirst(cell));
        if (item->paramId != parameter->paramid || !IsA(item->item, Var)) continue;
        if (Node* column = outer_column(columns, castNode(Var, item->item))) return column;
    }
    return nullptr;
}

Node* replace_parameters(Node* node, void* context)
{
    auto* columns = static_cast<OuterColumns*>(context);
    if (node == nullptr) return nullptr;
    if (IsA(node, Param) && castNode(Param, node)->paramkind == PARAM_EXEC) {
        Node* column = parameter_column(*columns, castNode(Param, node));
        if (column == nullptr) columns->failed = true;
        return column != nullptr ? column : node;
    }
    return mutate_expression(node, replace_parameters, context);
}

// Takes the search keys, whose values come from the outer relation or are the same for all its rows; false where some
// cannot be evaluated ahead.
bool add_keys(const KnnSubquery& found, Node* (*replace)(Node*, void*), OuterColumns* columns, KnnBatchPlan* plan)
{
    plan->keys = found.keyed.keys;
    ListCell* cell;
    foreach (cell, found.keyed.values) {
        auto* value = static_cast<Node*>(lfirst(cell));
        if (value != nullptr) value = replace(value, columns);
        if (columns->failed || !may_evaluate_ahead(value)) {
            if (!is_value_of_scan(value)) return false;
            columns->failed = false;
            value = nullptr;
        }
        plan->values = lappend(plan->values, value);
    }
    return true;
}

// Finds the path of an inner k-NN subquery whose queries come from the outer relation, and fills *plan with the batch
// to read ahead. Null if there is none.
Path* find_knn_subquery(const RelOptInfo* outer, const RelOptInfo* inner, KnnBatchPlan* plan)
{
    if (inner->rtekind != RTE_SUBQUERY || inner->subroot == nullptr || bms_is_empty(inner->lateral_relids) ||
        !bms_is_subset(inner->lateral_relids, outer->relids)) {
        return nullptr;
    }
    ListCell* cell;
    foreach (cell, inner->pathlist) {
        auto* path = static_cast<Path*>(lfirst(cell));
        KnnSubquery found = {};
        if (!match_path(path, &found)) continue;
        OuterColumns columns = {inner->subplan_params, outer, false};
        Node* query = replace_parameters(found.query, &columns);
        if (columns.failed || !may_evaluate_ahead(query)) continue;
        KnnBatchPlan keyed = {};
        if (!add_keys(found, replace_parameters, &columns, &keyed)) continue;
        if (!contain_var_clause(query) && !contain_var_clause(reinterpret_cast<Node*>(keyed.values))) continue;
        Node* within = replace_parameters(found.within, &columns);
        *plan = {reinterpret_cast<Expr*>(query),
                 row_count_ahead(found.limit),
                 row_count_ahead(found.offset),
                 bound_ahead(columns.failed ? nullptr : within),
                 found.indexes,
                 found.filtered,
                 false,
                 keyed.keys,
                 keyed.values};
        return path;
    }
    return nullptr;
}

Node* replace_columns(Node* node, void* context)
{
    auto* columns = static_cast<OuterColumns*>(context);
    if (node == nullptr) return nullptr;
    if (IsA(node, PlaceHolderVar)) columns->failed = true;
    if (!IsA(node, Var)) return mutate_expression(node, replace_columns, context);
    Node* column = outer_column(*columns, castNode(Var, node));
    if (column == nullptr) columns->failed = true;
    return column != nullptr ? column : node;
}

// Finds the cheapest path of an inner relation that searches within a bound for the rows of the outer one, and fills
// *plan with the batch to read ahead. Null if there is none.
Path* find_bounded_search(const RelOptInfo* outer, const RelOptInfo* inner, KnnBatchPlan* plan)
{
    Path* cheapest = nullptr;
    ListCell* cell;
    foreach (cell, inner->pathlist) {
        auto* path = static_cast<Path*>(lfirst(cell));
        Relids required = PATH_REQ_OUTER(path);
        if (bms_is_empty(required) || !bms_is_subset(required, outer->relids)) continue;
        KnnSubquery found = {};
        if (!match_path(path, &found) || found.within == nullptr) continue;
        OuterColumns columns = {NIL, outer, false};
        Node* query = replace_columns(found.query, &columns);
        Node* within = replace_columns(found.within, &columns);
        if (columns.failed || !contain_var_clause(query) || !may_evaluate_ahead(query)) continue;
        // Without its bound a search costs more than alone.
        if (!may_evaluate_ahead(within)) continue;
        KnnBatchPlan keyed = {};
        if (!add_keys(found, replace_columns, &columns, &keyed)) continue;
        if (cheapest != nullptr && cheapest->total_cost <= path->total_cost) continue;
        cheapest = path;
        *plan = {reinterpret_cast<Expr*>(query),
                 row_count_ahead(nullptr),
                 row_count_ahead(nullptr),
                 bound_ahead(within),
                 found.indexes,
                 true,
                 false,
                 keyed.keys,
                 keyed.values};
    }
    return cheapest;
}

template <class Node>
Node* copy_path(const Node* path)
{
    auto* copy = static_cast<Node*>(palloc(sizeof(Node)));
    memcpy(static_cast<void*>(copy), path, sizeof(Node));
    return copy;
}

// Whether a column of the query's result only serves to sort.
bool is_only_sorted_by(const PlannerInfo* root, Index sort_group)
{
    ListCell* cell;
    foreach (cell, root->processed_tlist) {
        const auto* entry = static_cast<TargetEntry*>(lfirst(cell));
        if (entry->ressortgroupref == sort_group) return entry->resjunk;
    }
    return false;
}

// The same projection with NULL in place of the index's distance, if only the sort uses it.
Path* without_distance(const PlannerInfo* root, ProjectionPath* projection)
{
    const Path* scan = path_below_knn_filter(projection->subpath);
    if (scan == nullptr) scan = projection->subpath;
    if (!IsA(scan, IndexPath)) return &projection->path;
    Node* distance = static_cast<Node*>(linitial(reinterpret_cast<const IndexPath*>(scan)->indexorderbys));
    PathTarget* target = copy_pathtarget(projection->path.pathtarget);
    bool found = false;
    ListCell* cell;
    foreach (cell, target->exprs) {
        const Index sort_group = get_pathtarget_sortgroupref(target, foreach_current_index(cell));
        if (sort_group == 0 || !equal(lfirst(cell), distance) || !is_only_sorted_by(root, sort_group)) continue;
        lfirst(cell) = makeNullConst(exprType(distance), exprTypmod(distance), exprCollation(distance));
        found = true;
    }
    if (!found) return &projection->path;
    ProjectionPath* copy = copy_path(projection);
    copy->path.pathtarget = target;
    return &copy->path;
}

// The subquery's path without distances that only serve to sort: the index scan emits rows in order already, and
// computing the distances would read each row's whole vector.
Path* without_unused_distance(const PlannerInfo* root, Path* path)
{
    if (IsA(path, ProjectionPath)) return without_distance(root, reinterpret_cast<ProjectionPath*>(path));
    if (IsA(path, LimitPath) && reinterpret_cast<LimitPath*>(path)->limitOption == LIMIT_OPTION_COUNT) {
        LimitPath* copy = copy_path(reinterpret_cast<LimitPath*>(path));
        copy->subpath = without_unused_distance(root, copy->subpath);
        return &copy->path;
    }
    if (IsA(path, SubqueryScanPath) && path->parent->subroot != nullptr) {
        SubqueryScanPath* copy = copy_path(reinterpret_cast<SubqueryScanPath*>(path));
        copy->subpath = without_unused_distance(path->parent->subroot, copy->subpath);
        return &copy->path;
    }
    return path;
}

Plan* plan_knn_batch(PlannerInfo*, RelOptInfo*, CustomPath* path, List* targets, List*, List* plans)
{
    return make_custom_plan(path, targets, plans, static_cast<List*>(linitial(path->custom_private)),
                            static_cast<List*>(lsecond(path->custom_private)), &knn_batch_scan_methods);
}

const CustomPathMethods batch_path_methods = {"KnnBatch", plan_knn_batch, nullptr};

CustomPath* make_batch_path(const Path* child, const KnnBatchPlan& plan)
{
    CustomPath* path = make_custom_path(child, &batch_path_methods);
    path->path.total_cost += child->rows * cpu_tuple_cost;
    path->custom_private = list_make2(knn_batch_expressions(plan), knn_batch_private(plan));
    return path;
}

struct JoinSides {
    PlannerInfo* root;
    RelOptInfo* join;
    RelOptInfo* outer;
    RelOptInfo* inner;
    JoinType type;
    JoinPathExtraData* extra;
};

// Add the nested loop over a batched outer path. The inner path's cost does not include the saving of shared requests.
void add_batched_join(const JoinSides& sides, Path* child, Path* inner, const KnnBatchPlan& plan)
{
    CustomPath* outer = make_batch_path(child, plan);
    Relids required = calc_nestloop_required_outer(sides.outer->relids, PATH_REQ_OUTER(&outer->path),
                                                   sides.inner->relids, PATH_REQ_OUTER(inner));
    if (required != nullptr && !bms_overlap(required, sides.extra->param_source_rels)) {
        bms_free(required);
        return;
    }
    JoinCostWorkspace workspace;
#if PG_VERSION_NUM >= 190000
    initial_cost_nestloop(sides.root, &workspace, sides.type, PGS_NESTLOOP_PLAIN | PGS_CONSIDER_NONPARTIAL,
                          &outer->path, inner, sides.extra);
#else
    initial_cost_nestloop(sides.root, &workspace, sides.type, &outer->path, inner, sides.extra);
#endif
    NestPath* join = create_nestloop_path(sides.root, sides.join, sides.type, &workspace, sides.extra, &outer->path,
                                          inner, sides.extra->restrictlist, outer->path.pathkeys, required);
    Path& path = join->jpath.path;
    path.startup_cost = outer->path.startup_cost + (path.startup_cost - outer->path.startup_cost) * batched_share;
    path.total_cost = outer->path.total_cost + (path.total_cost - outer->path.total_cost) * batched_share;
    path.parallel_safe = false;
    add_path(sides.join, &path);
}

template <class Walker>
bool walk_query(Query* query, Walker walker, void* context)
{
#if PG_VERSION_NUM >= 160000
    return query_tree_walker(query, walker, context, 0);
#else
    return query_tree_walker(query, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(walker)), context, 0);
#endif
}

// Whether a query inside the expression, or one of its common table expressions, locks or changes rows.
bool touches_rows(Node* node, void* context)
{
    if (node == nullptr) return false;
    if (!IsA(node, Query)) return walk_expression(node, touches_rows, context);
    auto* query = castNode(Query, node);
    return query->rowMarks != NIL || query->commandType != CMD_SELECT || walk_query(query, touches_rows, context);
}

bool is_simple(const PlannerInfo* root)
{
    Query* query = root->parse;
    return root->tuple_fraction <= 0 && query->limitCount == nullptr && !walk_query(query, touches_rows, nullptr) &&
           !contain_volatile_functions(reinterpret_cast<Node*>(query));
}

// Whether a statement reads all rows of all its queries, and no query has effects except the statement's own on the
// rows that it finds. If subplan_batch.h does not check the finished plan, as in a session's first statement, only
// joins of such statements are batched.
bool is_simple_statement(const PlannerInfo* root)
{
    ListCell* cell;
    foreach (cell, root->glob->subroots) {
        if (!is_simple(static_cast<const PlannerInfo*>(lfirst(cell)))) return false;
    }
    for (; root != nullptr; root = root->parent_root) {
        if (!is_simple(root)) return false;
    }
    return true;
}

// Whether a path returns columns that identify rows to be changed, of a partitioned table or another parent. PostgreSQL
// resolves them in joins and unions, not in a custom scan.
bool identifies_rows_of_children(const Path* path)
{
    ListCell* cell;
    foreach (cell, path->pathtarget->exprs) {
        const auto* column = static_cast<const Var*>(lfirst(cell));
        if (IsA(column, Var) && column->varno == ROWID_VAR) return true;
    }
    return false;
}

void add_join_paths(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner, JoinType type,
                    JoinPathExtraData* extra)
{
    if (batch_previous_hook != nullptr) batch_previous_hook(root, join, outer, inner, type, extra);
    if (!setting_knn_batch || !enable_nestloop) return;
    if (type != JOIN_INNER && type != JOIN_LEFT && type != JOIN_SEMI && type != JOIN_ANTI) return;
    KnnBatchPlan plan = {};
    Path* knn = find_knn_subquery(outer, inner, &plan);
    // A placeholder may have to be evaluated between the two relations.
    if (knn == nullptr && inner->rtekind == RTE_RELATION && root->placeholder_list == NIL)
        knn = find_bounded_search(outer, inner, &plan);
    if (knn == nullptr || !(knn_batch_plans_are_checked || is_simple_statement(root))) return;
    knn = without_unused_distance(root, knn);
    List* children = list_copy(outer->pathlist);
    ListCell* cell;
    foreach (cell, children) {
        auto* child = static_cast<Path*>(lfirst(cell));
        if (!bms_overlap(PATH_REQ_OUTER(child), inner->relids) && !identifies_rows_of_children(child)) {
            add_batched_join({root, join, outer, inner, type, extra}, child, knn, plan);
        }
    }
    list_free(children);
}

}  // namespace

bool knn_batch_plans_are_checked = false;

Expr* row_count_ahead(Node* count)
{
    if (count != nullptr && may_evaluate_ahead(count)) return static_cast<Expr*>(copyObjectImpl(count));
    return reinterpret_cast<Expr*>(makeNullConst(INT8OID, -1, InvalidOid));
}

Expr* bound_ahead(Node* bound)
{
    if (bound != nullptr && may_evaluate_ahead(bound)) return static_cast<Expr*>(copyObjectImpl(bound));
    return reinterpret_cast<Expr*>(makeNullConst(FLOAT8OID, -1, InvalidOid));
}

void init_knn_batch()
{
    RegisterCustomScanMethods(&knn_batch_scan_methods);
    batch_previous_hook = set_join_pathlist_hook;
    set_join_pathlist_hook = add_join_paths;
}

}  // namespace pgwarp
