#include "postgres/planner/custom_path.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
}

namespace pgwarp
{

double loops_over(const PlannerInfo* root, Relids outer)
{
    double rows = 1;
    int relation = -1;
    while ((relation = bms_next_member(outer, relation)) >= 0) {
        const RelOptInfo* rel = root->simple_rel_array[relation];
        if (rel != nullptr) rows = Max(rows, rel->rows);
    }
    return rows;
}

CustomPath* make_custom_path(const Path* child, const CustomPathMethods* methods)
{
    CustomPath* path = makeNode(CustomPath);
    path->path.pathtype = T_CustomScan;
    path->path.parent = child->parent;
    path->path.pathtarget = child->pathtarget;
    path->path.param_info = child->param_info;
    path->path.rows = child->rows;
    path->path.startup_cost = child->startup_cost;
    path->path.total_cost = child->total_cost;
    path->path.pathkeys = child->pathkeys;
#if PG_VERSION_NUM >= 180000
    path->path.disabled_nodes = child->disabled_nodes;
#endif
    path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
    path->custom_paths = list_make1(const_cast<Path*>(child));
    path->methods = methods;
    return path;
}

Plan* make_custom_plan(const CustomPath* path, List* targets, List* plans, List* expressions, List* settings,
                       const CustomScanMethods* methods)
{
    CustomScan* scan = makeNode(CustomScan);
    const Plan* child = static_cast<Plan*>(linitial(plans));
    scan->scan.plan.targetlist = targets;
    scan->flags = path->flags;
    scan->custom_plans = plans;
    scan->custom_scan_tlist = static_cast<List*>(copyObjectImpl(child->targetlist));
    scan->custom_exprs = expressions;
    scan->custom_private = settings;
    scan->methods = methods;
    return &scan->scan.plan;
}

}  // namespace pgwarp
