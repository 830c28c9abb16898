#include "postgres/planner/index_only_path.h"

#include "postgres/am/attribute_code.h"
#include "postgres/am/element_type.h"
#include "postgres/am/index_options.h"
#include "postgres/client/index_state.h"
#include "postgres/storage/included_tuple.h"

extern "C" {
#include "access/sysattr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
}

namespace pgwarp
{

namespace
{

// PostgreSQL's threshold: a target that costs more is computed above a LIMIT.
constexpr double postponed_operators = 10.0;

set_rel_pathlist_hook_type index_only_previous_hook = nullptr;

// The values that an index can return for a relation.
struct Given {
    Index relation;
    Node* distance;      // expression of the scan's order; null if its value is not returned
    Bitmapset* columns;  // attribute numbers of included columns
};

// Whether an expression needs a column of the relation that the index does not return.
bool needs_more(Node* node, void* context)
{
    const auto* given = static_cast<const Given*>(context);
    if (node == nullptr) return false;
    if (given->distance != nullptr && equal(node, given->distance)) return false;
    if (IsA(node, Var)) {
        const auto* var = castNode(Var, node);
        if (var->varlevelsup > 0 || static_cast<Index>(var->varno) != given->relation) return false;
        return var->varattno <= 0 || !bms_is_member(var->varattno, given->columns);
    }
    if (IsA(node, PlaceHolderVar)) return true;
#if PG_VERSION_NUM >= 160000
    return expression_tree_walker(node, needs_more, context);
#else
    return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(needs_more)), context);
#endif
}

// Whether the planner may compute this target above a LIMIT, from the relation's own columns.
bool may_be_postponed(PlannerInfo* root, Node* expression)
{
    QualCost cost;
    cost_qual_eval_node(&cost, expression, root);
    return contain_volatile_functions(expression) || cost.per_tuple > postponed_operators * cpu_operator_cost;
}

// Whether a condition is one of the scan's keys, which the scan evaluates by itself.
bool is_key(const IndexPath* path, const RestrictInfo* condition)
{
    ListCell* cell;
    foreach (cell, path->indexclauses) {
        const auto* clause = lfirst_node(IndexClause, cell);
        if (clause->rinfo == condition && !clause->lossy) return true;
    }
    return false;
}

// Whether the index returns everything that the query needs of the relation. has_distance: the query may use the
// distance's value; otherwise it may only order by it.
bool gives_all(PlannerInfo* root, const IndexPath* path, Given given, bool has_distance)
{
    const Given sorted_by = given;
    if (!has_distance) given.distance = nullptr;
    ListCell* cell;
    foreach (cell, root->processed_tlist) {
        const auto* target = static_cast<const TargetEntry*>(lfirst(cell));
        auto* expression = reinterpret_cast<Node*>(target->expr);
        if (equal(expression, given.distance)) continue;
        if (target->resjunk && !needs_more(expression, const_cast<Given*>(&sorted_by))) continue;
        if (needs_more(expression, &given)) return false;
        Given columns = given;
        columns.distance = nullptr;
        if (has_distance && needs_more(expression, &columns) && may_be_postponed(root, expression)) return false;
    }
    foreach (cell, path->indexinfo->indrestrictinfo) {
        const auto* condition = static_cast<RestrictInfo*>(lfirst(cell));
        if (!is_key(path, condition) && needs_more(reinterpret_cast<Node*>(condition->clause), &given)) return false;
    }
    return true;
}

// Whether all keys are on filter columns whose codes tell the key's result, so that rows needn't be read to check them
// again: but for a few values, for which the scan reads the rows.
bool has_exact_keys(const IndexPath* path)
{
    ListCell* cell;
    foreach (cell, path->indexclauses) {
        const int column = lfirst_node(IndexClause, cell)->indexcol;
        if (column == linitial_int(path->indexorderbycols)) return false;
        const auto* target = static_cast<TargetEntry*>(list_nth(path->indexinfo->indextlist, column));
        const CodeForm form = code_form(exprType(reinterpret_cast<Node*>(target->expr)));
        if (form == CodeForm::none || may_tie(form)) return false;
    }
    return true;
}

// Whether the query is a plain SELECT from this one relation: then the scan itself computes the result's columns.
bool is_plain_select(const PlannerInfo* root, const RelOptInfo* rel)
{
    const Query* query = root->parse;
    return rel->reloptkind == RELOPT_BASEREL && query->commandType == CMD_SELECT && query->rowMarks == NIL &&
           query->groupClause == NIL && query->groupingSets == NIL && query->distinctClause == NIL &&
           query->havingQual == nullptr && query->setOperations == nullptr && !query->hasAggs &&
           !query->hasWindowFuncs && !query->hasTargetSRFs && root->placeholder_list == NIL &&
           bms_membership(root->all_baserels) == BMS_SINGLETON;
}

// The index's guarantee for its rows' distances.
enum class Distances { unordered, ordered, exact };

// Read from the index as it was built, because its options may have been altered since.
Distances known_distances(const IndexOptInfo* info)
{
    Relation index = index_open(info->indexoid, NoLock);
    Distances known = Distances::unordered;
    const bool ours = find_access_method(index->rd_indam->amoptions) != nullptr;
    if (ours && has_included_columns(index) && IndexRelationGetNumberOfAttributes(index) < INDEX_MAX_KEYS) {
        const IndexState state = read_index_state(index);
        const ResultKind kind = result_promise(state.meta.shape, state.options).kind;
        if (kind != ResultKind::approximate) {
            const bool exact = kind == ResultKind::exact && index_arithmetic(index) == Arithmetic::canonical;
            known = exact ? Distances::exact : Distances::ordered;
        }
    }
    index_close(index, NoLock);
    return known;
}

Bitmapset* included_columns(const IndexOptInfo* info)
{
    Bitmapset* columns = nullptr;
    for (int i = info->nkeycolumns; i < info->ncolumns; ++i) {
        if (info->indexkeys[i] > 0) columns = bms_add_member(columns, info->indexkeys[i]);
    }
    return columns;
}

// The index in the form that the plan refers to: (key columns ..., distance, included columns ...). The scan returns
// the values of key columns only with rows whose keys are checked again. So the plan refers to a key column for this
// check alone: one that the query could use otherwise, since included columns give it, counts as one that cannot be
// returned.
IndexOptInfo* with_distance(const IndexOptInfo* info, int vector, Given given)
{
    Node* distance = given.distance;
    given.distance = nullptr;
    auto* made = static_cast<IndexOptInfo*>(palloc(sizeof(IndexOptInfo)));
    memcpy(made, info, sizeof(IndexOptInfo));
    made->canreturn = static_cast<bool*>(palloc(sizeof(bool) * static_cast<Size>(info->ncolumns + 1)));
    made->indextlist = NIL;
    for (int i = 0; i < info->ncolumns; ++i) {
        auto* target = static_cast<TargetEntry*>(copyObjectImpl(list_nth(info->indextlist, i)));
        const bool key = i < info->nkeycolumns;
        if (i == info->nkeycolumns) {
            auto* expression = reinterpret_cast<Expr*>(copyObjectImpl(distance));
            const auto number = static_cast<AttrNumber>(i + 1);
            made->indextlist = lappend(made->indextlist, makeTargetEntry(expression, number, nullptr, false));
            made->canreturn[i] = true;
        }
        if (!key) target->resno = static_cast<AttrNumber>(i + 2);
        made->canreturn[key ? i : i + 1] =
            !key || (i != vector && needs_more(reinterpret_cast<Node*>(target->expr), &given));
        made->indextlist = lappend(made->indextlist, target);
    }
    return made;
}

// The target of a scan whose parent requests no columns of its own: the returned columns of the relation, and the
// distance.
PathTarget* given_target(const RelOptInfo* rel, Given given)
{
    PathTarget* target = copy_pathtarget(rel->reltarget);
    Node* distance = given.distance;
    given.distance = nullptr;
    target->exprs = NIL;
    target->sortgrouprefs = nullptr;
    ListCell* cell;
    foreach (cell, rel->reltarget->exprs) {
        auto* expression = static_cast<Node*>(lfirst(cell));
        if (!needs_more(expression, &given)) target->exprs = lappend(target->exprs, expression);
    }
    target->exprs = lappend(target->exprs, distance);
    return target;
}

void add_index_only_path(PlannerInfo* root, RelOptInfo* rel, const IndexPath* path)
{
    const IndexOptInfo* info = path->indexinfo;
    if (path->path.pathtype != T_IndexScan || list_length(path->indexorderbys) != 1 ||
        path->path.param_info != nullptr || info->ncolumns == info->nkeycolumns || !has_exact_keys(path)) {
        return;
    }
    const Distances known = known_distances(info);
    if (known == Distances::unordered) return;
    const Given given = {rel->relid, static_cast<Node*>(linitial(path->indexorderbys)), included_columns(info)};
    const bool exact = known == Distances::exact;
    if (!gives_all(root, path, given, exact)) return;
    // A second sort key and WITH TIES compare the distance's value.
    const Query* query = root->parse;
    const bool ties = list_length(query->sortClause) != 1 || query->limitOption == LIMIT_OPTION_WITH_TIES;
    if (!exact && ties) return;
    IndexPath* made = create_index_path(root, with_distance(info, linitial_int(path->indexorderbycols), given),
                                        path->indexclauses, path->indexorderbys, path->indexorderbycols,
                                        path->path.pathkeys, path->indexscandir, true, nullptr, 1.0, false);
    made->path.pathtarget = given_target(rel, given);
    add_path(rel, &made->path);
}

void add_index_only_paths(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry)
{
    if (index_only_previous_hook != nullptr) index_only_previous_hook(root, rel, number, entry);
    // If no page is all-visible, an index-only scan costs more than an index scan.
    if (!enable_indexonlyscan || entry->rtekind != RTE_RELATION || rel->allvisfrac <= 0) return;
    if (!is_plain_select(root, rel)) return;
    // add_path() may free paths of the list that are not index paths, and changes the list.
    List* paths = NIL;
    ListCell* cell;
    foreach (cell, rel->pathlist) {
        if (IsA(lfirst(cell), IndexPath)) paths = lappend(paths, lfirst(cell));
    }
    foreach (cell, paths) add_index_only_path(root, rel, static_cast<const IndexPath*>(lfirst(cell)));
    list_free(paths);
}

}  // namespace

void init_index_only_path()
{
    index_only_previous_hook = set_rel_pathlist_hook;
    set_rel_pathlist_hook = add_index_only_paths;
}

}  // namespace pgwarp
