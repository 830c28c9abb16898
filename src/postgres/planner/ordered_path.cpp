#include "postgres/planner/ordered_path.h"

#include "postgres/am/cost.h"
#include "postgres/am/index_columns.h"
#include "postgres/am/methods.h"
#include "postgres/planner/added_keys.h"
#include "postgres/planner/distance_order.h"

extern "C" {
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
}

namespace pgwarp
{

namespace
{

set_rel_pathlist_hook_type ordered_previous_hook = nullptr;

// Whether a path is an IndexPath of pgwarp that cannot be executed.
bool is_forbidden(const Path* path)
{
    if (!IsA(path, IndexPath)) return false;
    const auto* index_path = reinterpret_cast<const IndexPath*>(path);
    return find_access_method(index_path->indexinfo) != nullptr && is_forbidden_path(index_path);
}

// Returns the path without search keys of the column that orders it. IS NOT NULL drops its last rows, which a KnnFilter
// does too, and other nodes know its scans.
IndexPath* without_order_keys(IndexPath* path)
{
    const int vector = vector_column(path->indexinfo);
    List* keys = NIL;
    ListCell* cell;
    foreach (cell, path->indexclauses) {
        if (lfirst_node(IndexClause, cell)->indexcol != vector) keys = lappend(keys, lfirst(cell));
    }
    if (list_length(keys) == list_length(path->indexclauses)) return path;
    auto* copy = static_cast<IndexPath*>(palloc(sizeof(IndexPath)));
    memcpy(copy, path, sizeof(IndexPath));
    copy->indexclauses = keys;
    return copy;
}

// Puts a path into `kept`, or one in its place into `made`, with keys that PostgreSQL's planner left out.
void keep_path(PlannerInfo* root, RelOptInfo* rel, Path* path, List** kept, List** made)
{
    IndexPath* scan = IsA(path, IndexPath) ? reinterpret_cast<IndexPath*>(path) : nullptr;
    if (scan == nullptr || find_access_method(scan->indexinfo) == nullptr) {
        *kept = lappend(*kept, path);
        return;
    }
    scan = without_order_keys(scan);
    IndexPath* keyed = with_added_keys(root, rel, scan);
    List** list = keyed == scan ? kept : made;
    *list = lappend(*list, keyed);
}

// Whether one of the paths is a scan of the index in the order of a sort key.
bool has_order(List* paths, const IndexOptInfo* index, const PathKey* key)
{
    ListCell* cell;
    foreach (cell, paths) {
        const auto* path = static_cast<const IndexPath*>(lfirst(cell));
        if (IsA(path, IndexPath) && path->indexinfo == index && path->path.param_info == nullptr &&
            linitial(path->path.pathkeys) == key)
            return true;
    }
    return false;
}

bool is_usable(const IndexOptInfo* index)
{
    const bool valid = (index->indpred == NIL || index->predOK) && !index->hypothetical;
    return valid && find_access_method(index) != nullptr;
}

// Adds a path for each index that gives the order of the query's first sort key, or all keys, where PostgreSQL made
// none: before 17 it makes none for the first of several keys, and never one for an expression around the distance.
void add_first_orders(PlannerInfo* root, RelOptInfo* rel, List* kept, List** made)
{
    auto* key = linitial_node(PathKey, root->query_pathkeys);
    ListCell* cell;
    foreach (cell, rel->indexlist) {
        auto* index = lfirst_node(IndexOptInfo, cell);
        if (!is_usable(index) || has_order(kept, index, key) || has_order(*made, index, key)) continue;
        const DistanceOrder order = find_distance_order(root, index, key);
        if (order.distance == nullptr) continue;
        IndexPath* path =
            create_index_path(root, index, NIL, list_make1(order.distance), list_make1_int(vector_column(index)),
                              list_make1(key), ForwardScanDirection, false, rel->lateral_relids, 1.0, false);
        if (!is_forbidden_path(path)) *made = lappend(*made, with_added_keys(root, rel, path));
    }
}

void keep_possible_paths(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry)
{
    if (ordered_previous_hook != nullptr) ordered_previous_hook(root, rel, number, entry);
    if (entry->rtekind != RTE_RELATION) return;
    List* kept = NIL;
    List* made = NIL;
    ListCell* cell;
    foreach (cell, rel->pathlist) {
        auto* path = static_cast<Path*>(lfirst(cell));
        if (!is_forbidden(path)) keep_path(root, rel, path, &kept, &made);
    }
    const bool is_table = !entry->inh && entry->tablesample == nullptr && !IS_DUMMY_REL(rel);
    if (is_table && root->query_pathkeys != NIL) add_first_orders(root, rel, kept, &made);
    rel->pathlist = kept;
    foreach (cell, made) add_path(rel, static_cast<Path*>(lfirst(cell)));
}

}  // namespace

void init_ordered_path()
{
    ordered_previous_hook = set_rel_pathlist_hook;
    set_rel_pathlist_hook = keep_possible_paths;
}

}  // namespace pgwarp
