// The planner's side of KnnPartitions: puts it above each ordered union of scans of pgwarp indexes.
#include "postgres/planner/knn_partitions_path.h"

#include "postgres/am/methods.h"
#include "postgres/executor/knn_partitions.h"
#include "postgres/planner/custom_path.h"
#include "postgres/planner/knn_filter_path.h"
#include "postgres/settings.h"

extern "C" {
#include "optimizer/planner.h"
}

namespace pgwarp
{

namespace
{

create_upper_paths_hook_type partitions_previous_hook = nullptr;

// Returns the scan of a pgwarp index in order of distance below nodes that pass its rows on; null for other paths.
const IndexPath* knn_scan_of(const Path* path)
{
    if (IsA(path, ProjectionPath)) path = reinterpret_cast<const ProjectionPath*>(path)->subpath;
    if (const Path* below = path_below_knn_filter(path)) path = below;
    if (!IsA(path, IndexPath)) return nullptr;
    const auto* index = reinterpret_cast<const IndexPath*>(path);
    const bool ours = list_length(index->indexorderbys) == 1 && find_access_method(index->indexinfo) != nullptr;
    return ours ? index : nullptr;
}

// Whether the rows of the union are sorted by the distance itself, not by an expression around it, NULLs last.
bool sorts_by_distance(const MergeAppendPath* path)
{
    ListCell* cell;
    foreach (cell, path->subpaths) {
        const auto* child = static_cast<const Path*>(lfirst(cell));
        const IndexPath* scan = knn_scan_of(child);
        if (scan != nullptr && linitial(scan->path.pathkeys) != linitial(child->pathkeys)) return false;
    }
    return true;
}

bool merges_knn_scans(const MergeAppendPath* path)
{
    int scans = 0;
    ListCell* cell;
    foreach (cell, path->subpaths) {
        if (knn_scan_of(static_cast<const Path*>(lfirst(cell))) != nullptr && ++scans == 2) return true;
    }
    return false;
}

// Returns the Merge Append. If it sorts by columns that its path does not return, as for a UNION ALL, a Result above it
// removes them; KnnPartitions works with them too.
Plan* find_merge_append(Plan* child)
{
    const bool projects = IsA(child, Result) && reinterpret_cast<const ::Result*>(child)->resconstantqual == nullptr &&
                          outerPlan(child) != nullptr && IsA(outerPlan(child), MergeAppend);
    return projects ? outerPlan(child) : child;
}

Plan* plan_knn_partitions(PlannerInfo*, RelOptInfo*, CustomPath* path, List* targets, List*, List* plans)
{
    List* merge = list_make1(find_merge_append(static_cast<Plan*>(linitial(plans))));
    return make_custom_plan(path, targets, merge, NIL, path->custom_private, &knn_partitions_scan_methods);
}

const CustomPathMethods partitions_path_methods = {"KnnPartitions", plan_knn_partitions, nullptr};

// Returns the path with KnnPartitions above the union, or the path itself.
Path* with_knn_partitions(Path* path)
{
    if (IsA(path, ProjectionPath)) {
        auto* projection = reinterpret_cast<ProjectionPath*>(path);
        Path* below = with_knn_partitions(projection->subpath);
        if (below == projection->subpath) return path;
        auto* copy = makeNode(ProjectionPath);
        *copy = *projection;
        copy->subpath = below;
        copy->path.parallel_safe = below->parallel_safe;
        return &copy->path;
    }
    if (IsA(path, IncrementalSortPath)) {
        auto* sort = reinterpret_cast<IncrementalSortPath*>(path);
        Path* below = with_knn_partitions(sort->spath.subpath);
        if (below == sort->spath.subpath) return path;
        auto* copy = makeNode(IncrementalSortPath);
        *copy = *sort;
        copy->spath.subpath = below;
        copy->spath.path.parallel_safe = below->parallel_safe;
        return &copy->spath.path;
    }
    if (!IsA(path, MergeAppendPath)) return path;
    const auto* merge = reinterpret_cast<MergeAppendPath*>(path);
    if (!merges_knn_scans(merge)) return path;
    CustomPath* made = make_custom_path(path, &partitions_path_methods);
    made->custom_private = knn_partitions_private(sorts_by_distance(merge));
    return &made->path;
}

void add_upper_paths(PlannerInfo* root, UpperRelationKind stage, RelOptInfo* input, RelOptInfo* output, void* extra)
{
    if (partitions_previous_hook != nullptr) partitions_previous_hook(root, stage, input, output, extra);
    if (stage != UPPERREL_ORDERED || !setting_knn_batch) return;
    ListCell* cell;
    foreach (cell, output->pathlist) lfirst(cell) = with_knn_partitions(static_cast<Path*>(lfirst(cell)));
}

}  // namespace

Path* path_below_knn_partitions(const Path* path)
{
    if (!IsA(path, CustomPath)) return nullptr;
    const auto* custom = reinterpret_cast<const CustomPath*>(path);
    return custom->methods == &partitions_path_methods ? static_cast<Path*>(linitial(custom->custom_paths)) : nullptr;
}

void init_knn_partitions()
{
    RegisterCustomScanMethods(&knn_partitions_scan_methods);
    partitions_previous_hook = create_upper_paths_hook;
    create_upper_paths_hook = add_upper_paths;
}

}  // namespace pgwarp
