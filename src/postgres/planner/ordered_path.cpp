#include "postgres/planner/ordered_path.h"

#include "postgres/am/cost.h"
#include "postgres/am/index_columns.h"
#include "postgres/am/methods.h"
#include "postgres/planner/added_keys.h"

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

// Returns the path as an IndexPath of pgwarp that cannot be executed; null for any other path.
IndexPath* as_forbidden(Path* path)
{
    if (!IsA(path, IndexPath)) return nullptr;
    auto* index_path = reinterpret_cast<IndexPath*>(path);
    const bool ours = find_access_method(index_path->indexinfo) != nullptr;
    return ours && is_forbidden_path(index_path) ? index_path : nullptr;
}

// Returns the same path in order of the first distance only.
IndexPath* with_first_distance(PlannerInfo* root, const IndexPath* path)
{
    return create_index_path(root, path->indexinfo, path->indexclauses, list_make1(linitial(path->indexorderbys)),
                             list_make1_int(linitial_int(path->indexorderbycols)),
                             list_make1(linitial(path->path.pathkeys)), path->indexscandir, false,
                             PATH_REQ_OUTER(&path->path), 1.0, false);
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

void keep_possible_paths(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry)
{
    if (ordered_previous_hook != nullptr) ordered_previous_hook(root, rel, number, entry);
    if (entry->rtekind != RTE_RELATION) return;
    List* kept = NIL;
    List* made = NIL;
    ListCell* cell;
    foreach (cell, rel->pathlist) {
        const IndexPath* forbidden = as_forbidden(static_cast<Path*>(lfirst(cell)));
        if (forbidden == nullptr) {
            keep_path(root, rel, static_cast<Path*>(lfirst(cell)), &kept, &made);
        } else if (list_length(forbidden->indexorderbys) > 1) {
            IndexPath* path = with_first_distance(root, forbidden);
            if (!is_forbidden_path(path)) keep_path(root, rel, &path->path, &made, &made);
        }
    }
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
