#include "postgres/planner/ordered_path.h"

#include "postgres/am/cost.h"
#include "postgres/am/methods.h"

extern "C" {
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
}

namespace pgwarp
{

namespace
{

set_rel_pathlist_hook_type previous_hook = nullptr;

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

void keep_possible_paths(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry)
{
    if (previous_hook != nullptr) previous_hook(root, rel, number, entry);
    if (entry->rtekind != RTE_RELATION) return;
    List* kept = NIL;
    List* made = NIL;
    ListCell* cell;
    foreach (cell, rel->pathlist) {
        const IndexPath* forbidden = as_forbidden(static_cast<Path*>(lfirst(cell)));
        if (forbidden == nullptr) {
            kept = lappend(kept, lfirst(cell));
        } else if (list_length(forbidden->indexorderbys) > 1) {
            IndexPath* path = with_first_distance(root, forbidden);
            if (!is_forbidden_path(path)) made = lappend(made, path);
        }
    }
    rel->pathlist = kept;
    foreach (cell, made) add_path(rel, static_cast<Path*>(lfirst(cell)));
}

}  // namespace

void init_ordered_path()
{
    previous_hook = set_rel_pathlist_hook;
    set_rel_pathlist_hook = keep_possible_paths;
}

}  // namespace pgwarp
