// Adds, beside each KnnFilter of a relation, one whose scan searches among the rows of the planner's own bitmap of the
// other indexes. It competes by cost with the KnnFilter alone and with a Bitmap Heap Scan below a sort.
#include "postgres/planner/knn_bitmap_path.h"

#include "postgres/am/cost.h"
#include "postgres/am/methods.h"
#include "postgres/expression_walk.h"
#include "postgres/planner/knn_batch_path.h"
#include "postgres/planner/knn_filter_path.h"
#include "postgres/settings.h"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
}

namespace pgwarp
{

namespace
{

// The cost of handing on an address of the bitmap and of finding its row, in units of cpu_operator_cost: some 0.3 us,
// as a comparison of 700 dimensions (compare_cost()).
constexpr double address_operators = 60;
// A bitmap is of use where it has at most this share of the rows that the index's own keys leave.
constexpr double least_gain = 0.4;

set_rel_pathlist_hook_type bitmap_previous_hook = nullptr;

// The other indexes of the relation that make bitmaps, as indexes that do nothing else: so the planner drops no bitmap
// for an index scan that costs less.
List* bitmap_indexes(const RelOptInfo* rel)
{
    List* indexes = NIL;
    ListCell* cell;
    foreach (cell, rel->indexlist) {
        const auto* info = lfirst_node(IndexOptInfo, cell);
        if (!info->amhasgetbitmap || find_access_method(info) != nullptr) continue;
        auto* copy = static_cast<IndexOptInfo*>(palloc(sizeof(IndexOptInfo)));
        memcpy(copy, info, sizeof(IndexOptInfo));
        copy->amhasgettuple = false;
        indexes = lappend(indexes, copy);
    }
    return indexes;
}

// Returns the planner's bitmap heap path of the relation's conditions; null if there is none.
BitmapHeapPath* find_bitmap(PlannerInfo* root, RelOptInfo* rel)
{
    List* indexes = bitmap_indexes(rel);
    if (indexes == NIL) return nullptr;
    auto* alone = static_cast<RelOptInfo*>(palloc(sizeof(RelOptInfo)));
    memcpy(alone, rel, sizeof(RelOptInfo));
    alone->indexlist = indexes;
    alone->pathlist = alone->partial_pathlist = alone->ppilist = alone->joininfo = NIL;
    alone->has_eclass_joins = alone->consider_parallel = false;
    create_index_paths(root, alone);
    ListCell* cell;
    foreach (cell, alone->pathlist) {
        auto* path = static_cast<Path*>(lfirst(cell));
        if (!IsA(path, BitmapHeapPath) || path->param_info != nullptr) continue;
        path->parent = rel;
        return reinterpret_cast<BitmapHeapPath*>(path);
    }
    return nullptr;
}

// The cost of evaluating the relation's conditions for these rows.
Cost condition_cost(PlannerInfo* root, const RelOptInfo* rel, double rows)
{
    QualCost cost;
    cost_qual_eval(&cost, rel->baserestrictinfo, root);
    return cost.startup + (cpu_tuple_cost + cost.per_tuple) * rows;
}

// The cost of the rows that the query's LIMIT takes.
Cost cost_at_limit(const PlannerInfo* root, const Path* path)
{
    const double share = root->limit_tuples > 0 ? Min(1.0, root->limit_tuples / Max(1.0, path->rows)) : 1.0;
    return path->startup_cost + (path->total_cost - path->startup_cost) * share;
}

// Whether an expression has a value of an outer query's row. context: the PlannerInfo.
bool has_outer_value(Node* node, void* context)
{
    if (node == nullptr) return false;
    if (!IsA(node, Param)) return walk_expression(node, has_outer_value, context);
    if (castNode(Param, node)->paramkind != PARAM_EXEC) return false;
    for (const PlannerInfo* root = static_cast<PlannerInfo*>(context)->parent_root; root != nullptr;
         root = root->parent_root) {
        ListCell* cell;
        foreach (cell, root->plan_params) {
            if (static_cast<PlannerParamItem*>(lfirst(cell))->paramId == castNode(Param, node)->paramid) return true;
        }
    }
    return false;
}

// Whether searches for the rows of an outer query may become a batch, in which each costs less. A batch has no bitmaps.
bool may_be_batched(PlannerInfo* root, const IndexPath* scan)
{
    return setting_knn_batch && has_outer_value(static_cast<Node*>(linitial(scan->indexorderbys)), root);
}

// Returns null where a bitmap is of no use.
Path* make_with_bitmap(PlannerInfo* root, const RelOptInfo* rel, const Path* filter, BitmapHeapPath* bitmap)
{
    const auto* scan = reinterpret_cast<const IndexPath*>(path_below_knn_filter(filter));
    Cost making = 0;
    Selectivity share = 0;
    cost_bitmap_tree_node(bitmap->bitmapqual, &making, &share);
    const double keyed = share_of_keys(root, scan);
    if (is_forbidden_path(scan) || share > least_gain * keyed) return nullptr;
    const PartCost search = cost_among_rows(root, scan, share, filter->rows);
    CustomPath* path = with_bitmap(filter, bitmap, share);
    const Cost handing_on = address_operators * cpu_operator_cost * share * rel->tuples;
    path->path.startup_cost = making + handing_on + search.startup;
    path->path.total_cost = path->path.startup_cost + search.run + condition_cost(root, rel, search.rows);
    if (may_be_batched(root, scan) && cost_at_limit(root, &path->path) > batched_share * cost_at_limit(root, filter))
        return nullptr;
    return &path->path;
}

void add_bitmap_paths(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry)
{
    if (bitmap_previous_hook != nullptr) bitmap_previous_hook(root, rel, number, entry);
    if (entry->rtekind != RTE_RELATION || !enable_bitmapscan || !enable_indexscan) return;
    List* filters = NIL;
    ListCell* cell;
    foreach (cell, rel->pathlist) {
        auto* path = static_cast<Path*>(lfirst(cell));
        if (path->param_info == nullptr && path_below_knn_filter(path) != nullptr) filters = lappend(filters, path);
    }
    BitmapHeapPath* bitmap = filters != NIL ? find_bitmap(root, rel) : nullptr;
    if (bitmap == nullptr) return;
    List* made = NIL;
    foreach (cell, filters) {
        Path* path = make_with_bitmap(root, rel, static_cast<Path*>(lfirst(cell)), bitmap);
        if (path != nullptr) made = lappend(made, path);
    }
    // This may free paths, also those of filters.
    foreach (cell, made) add_path(rel, static_cast<Path*>(lfirst(cell)));
}

}  // namespace

void init_knn_bitmap()
{
    bitmap_previous_hook = set_rel_pathlist_hook;
    set_rel_pathlist_hook = add_bitmap_paths;
}

}  // namespace pgwarp
