#include "postgres/planner/bounded_path.h"

#include "postgres/am/cost.h"
#include "postgres/am/distance_bound.h"
#include "postgres/am/index_columns.h"
#include "postgres/am/methods.h"
#include "postgres/planner/added_keys.h"
#include "postgres/planner/bound_selectivity.h"
#include "postgres/planner/custom_path.h"
#include "postgres/planner/distance_order.h"
#include "postgres/planner/knn_filter_path.h"

extern "C" {
#include "access/stratnum.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

set_rel_pathlist_hook_type bounded_previous_hook = nullptr;

// Returns the order that PostgreSQL needs of a scan by this distance; NIL where it needs none.
List* wanted_order(const RelOptInfo* rel, const IndexOptInfo* index, const OpExpr* distance)
{
    ListCell* cell;
    foreach (cell, rel->pathlist) {
        const auto* path = static_cast<const IndexPath*>(lfirst(cell));
        if (IsA(path, IndexPath) && path->indexinfo->indexoid == index->indexoid &&
            list_length(path->indexorderbys) == 1 && equal(linitial(path->indexorderbys), distance))
            return path->path.pathkeys;
    }
    return NIL;
}

// Adds the index path for a clause; `outer`: the relations that its query and value come from.
void add_bounded_path(PlannerInfo* root, RelOptInfo* rel, IndexOptInfo* index, RestrictInfo* info, Relids outer)
{
    // The number of rows read depends on distances of rows that other clauses may hide: PostgreSQL's rule for index
    // conditions applies.
    if (!restriction_is_securely_promotable(info, rel)) return;
    OpExpr* distance = find_bounded_distance(root, index, info);
    if (distance == nullptr) return;
    Relids required = bms_union(rel->lateral_relids, outer);
    if (outer != nullptr && info->norm_selec >= 0) {
        ParamPathInfo* parameters = get_baserel_parampathinfo(root, rel, required);
        parameters->ppi_rows = Min(parameters->ppi_rows, clamp_row_est(rel->tuples * info->norm_selec));
    }
    List* order = wanted_order(rel, index, distance);
    List* keys = order != NIL ? order : list_make1(make_own_key(index, distance));
    IndexPath* path = create_index_path(root, index, NIL, list_make1(distance), list_make1_int(vector_column(index)),
                                        keys, ForwardScanDirection, false, bms_is_empty(required) ? nullptr : required,
                                        loops_over(root, outer), false);
    if (is_forbidden_path(path)) return;
    path = with_added_keys(root, rel, path);
    Path* filtered = with_knn_filter(root, rel, &path->path);
    if (filtered == &path->path) return;  // the index's predicate implies the clause
    filtered->pathkeys = order;
    add_path(rel, filtered);
}

void add_paths_of_index(PlannerInfo* root, RelOptInfo* rel, IndexOptInfo* index)
{
    ListCell* cell;
    foreach (cell, rel->baserestrictinfo) {
        add_bounded_path(root, rel, index, lfirst_node(RestrictInfo, cell), nullptr);
    }
    foreach (cell, rel->joininfo) {
        auto* info = lfirst_node(RestrictInfo, cell);
        if (!join_clause_is_movable_to(info, rel)) continue;
        Relids outer = bms_del_member(bms_copy(info->clause_relids), static_cast<int>(rel->relid));
        if (!bms_is_empty(outer)) add_bounded_path(root, rel, index, info, outer);
    }
}

void add_bounded_paths(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry)
{
    if (bounded_previous_hook != nullptr) bounded_previous_hook(root, rel, number, entry);
    if (IS_DUMMY_REL(rel)) return;
    if (entry->inh) sum_rows_of_children(root, rel);
    if (entry->rtekind != RTE_RELATION || entry->inh || entry->tablesample != nullptr) return;
    List* indexes = NIL;
    bool sized = true;
    ListCell* cell;
    foreach (cell, rel->indexlist) {
        auto* index = static_cast<IndexOptInfo*>(lfirst(cell));
        Metric metric;
        const bool usable = (index->indpred == NIL || index->predOK) && !index->hypothetical;
        if (!usable || find_access_method(index) == nullptr || !searches_within(index, &metric)) continue;
        if (set_bound_selectivity(root, rel, index, metric)) sized = false;
        indexes = lappend(indexes, index);
    }
    if (!sized) estimate_rows_again(root, rel);
    foreach (cell, indexes) add_paths_of_index(root, rel, static_cast<IndexOptInfo*>(lfirst(cell)));
    list_free(indexes);
}

}  // namespace

void init_bounded_path()
{
    bounded_previous_hook = set_rel_pathlist_hook;
    set_rel_pathlist_hook = add_bounded_paths;
}

}  // namespace pgwarp
