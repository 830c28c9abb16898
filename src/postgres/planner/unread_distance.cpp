#include "postgres/planner/unread_distance.h"

#include "postgres/am/methods.h"

extern "C" {
#include "access/genam.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"
}

namespace pgwarp
{

namespace
{

// The plan's own scan in order of a distance, whose rows are the statement's; null where there is none.
IndexScan* scan_of_rows(const PlannedStmt* statement)
{
    Plan* plan = statement->planTree;
    if (statement->commandType != CMD_SELECT || statement->rowMarks != NIL) return nullptr;
    if (IsA(plan, Limit)) {
        if (castNode(Limit, plan)->limitOption != LIMIT_OPTION_COUNT) return nullptr;
        plan = plan->lefttree;
    }
    if (!IsA(plan, IndexScan)) return nullptr;
    auto* scan = castNode(IndexScan, plan);
    return scan->indexorderbyorig != NIL ? scan : nullptr;
}

bool is_own(Oid index_id)
{
    Relation index = index_open(index_id, NoLock);
    const bool own = index->rd_indam != nullptr && find_access_method(index->rd_indam->amoptions) != nullptr;
    index_close(index, NoLock);
    return own;
}

// Whether the statement throws the column away: the top node has it as junk.
bool is_unread(const Plan* top, const Plan* scan, AttrNumber column)
{
    const auto* target = static_cast<const TargetEntry*>(list_nth(top->targetlist, column - 1));
    if (!target->resjunk || top == scan) return target->resjunk;
    return IsA(target->expr, Var) && castNode(Var, target->expr)->varattno == column;
}

}  // namespace

void drop_unread_distance(PlannedStmt* statement)
{
    IndexScan* scan = scan_of_rows(statement);
    if (scan == nullptr) return;
    const Plan* top = statement->planTree;
    if (list_length(top->targetlist) != list_length(scan->scan.plan.targetlist)) return;
    ListCell* cell;
    foreach (cell, scan->scan.plan.targetlist) {
        auto* target = lfirst_node(TargetEntry, cell);
        const bool sorts = list_member(scan->indexorderbyorig, target->expr);
        if (!sorts || !is_unread(top, &scan->scan.plan, target->resno)) continue;
        if (!is_own(scan->indexid)) return;
        const Oid type = exprType(reinterpret_cast<Node*>(target->expr));
        target->expr = reinterpret_cast<Expr*>(makeNullConst(type, -1, InvalidOid));
    }
}

}  // namespace pgwarp
