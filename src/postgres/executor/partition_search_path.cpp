// The planner's side of KnnPartitions: put above each ordered union of index scans of ours.
#include "postgres/access/methods.h"
#include "postgres/executor/custom_scan.h"
#include "postgres/executor/distance_stop.h"
#include "postgres/executor/partition_search.h"
#include "postgres/settings.h"

extern "C" {
#include "access/genam.h"
#include "optimizer/planner.h"
#include "utils/rel.h"
}

namespace pgwarp
{

namespace
{

create_upper_paths_hook_type previous_hook = nullptr;

// An access method known to be ours saves opening the next index.
struct OurMethod {
    Oid method;
};

bool is_ours(const IndexOptInfo* info, OurMethod* known)
{
    if (info->relam == known->method) return true;
    Relation index = index_open(info->indexoid, NoLock);
    const bool ours = find_access_method(index->rd_indam->amoptions) != nullptr;
    index_close(index, NoLock);
    if (ours) known->method = info->relam;
    return ours;
}

bool is_knn_scan(Path* path, OurMethod* known)
{
    if (IsA(path, ProjectionPath)) path = reinterpret_cast<ProjectionPath*>(path)->subpath;
    if (Path* below = path_below_distance_stop(path)) path = below;
    if (!IsA(path, IndexPath)) return false;
    const auto* index = reinterpret_cast<const IndexPath*>(path);
    return list_length(index->indexorderbys) == 1 && is_ours(index->indexinfo, known);
}

bool merges_knn_scans(const MergeAppendPath* path)
{
    OurMethod known = {InvalidOid};
    int scans = 0;
    ListCell* cell;
    foreach (cell, path->subpaths) {
        if (is_knn_scan(static_cast<Path*>(lfirst(cell)), &known) && ++scans == 2) return true;
    }
    return false;
}

Plan* plan_partition_search(PlannerInfo*, RelOptInfo*, CustomPath* path, List* targets, List*, List* plans)
{
    return make_custom_plan(path, targets, plans, NIL, NIL, &partition_search_scan_methods);
}

const CustomPathMethods path_methods = {"KnnPartitions", plan_partition_search, nullptr};

// The path with KnnPartitions above the union, or the path itself.
Path* with_partition_search(Path* path)
{
    if (IsA(path, ProjectionPath)) {
        auto* projection = reinterpret_cast<ProjectionPath*>(path);
        Path* below = with_partition_search(projection->subpath);
        if (below == projection->subpath) return path;
        auto* copy = makeNode(ProjectionPath);
        *copy = *projection;
        copy->subpath = below;
        return &copy->path;
    }
    if (!IsA(path, MergeAppendPath) || !merges_knn_scans(reinterpret_cast<MergeAppendPath*>(path))) return path;
    return &make_custom_path(path, &path_methods)->path;
}

void add_upper_paths(PlannerInfo* root, UpperRelationKind stage, RelOptInfo* input, RelOptInfo* output, void* extra)
{
    if (previous_hook != nullptr) previous_hook(root, stage, input, output, extra);
    if (stage != UPPERREL_ORDERED || !setting_knn_batch) return;
    ListCell* cell;
    foreach (cell, output->pathlist) lfirst(cell) = with_partition_search(static_cast<Path*>(lfirst(cell)));
}

}  // namespace

Path* path_below_partition_search(const Path* path)
{
    if (!IsA(path, CustomPath)) return nullptr;
    const auto* custom = reinterpret_cast<const CustomPath*>(path);
    return custom->methods == &path_methods ? static_cast<Path*>(linitial(custom->custom_paths)) : nullptr;
}

void init_partition_search()
{
    RegisterCustomScanMethods(&partition_search_scan_methods);
    previous_hook = create_upper_paths_hook;
    create_upper_paths_hook = add_upper_paths;
}

}  // namespace pgwarp
