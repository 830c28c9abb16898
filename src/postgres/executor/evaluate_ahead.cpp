#include "postgres/executor/evaluate_ahead.h"

#include "postgres/expression_walk.h"

extern "C" {
#include "catalog/pg_proc.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

bool may_raise_or_change(Oid function, void*)
{
    return !get_func_leakproof(function) || func_volatile(function) != PROVOLATILE_IMMUTABLE;
}

bool is_harmful(Node* node, void* context)
{
    if (node == nullptr) return false;
    return !is_harmless(node) || walk_expression(node, is_harmful, context);
}

}  // namespace

bool is_harmless(Node* node)
{
    switch (nodeTag(node)) {
        case T_Var:
            return castNode(Var, node)->varattno > 0 && castNode(Var, node)->varlevelsup == 0;
        case T_Param:
            return castNode(Param, node)->paramkind == PARAM_EXTERN;
        case T_ArrayExpr:
            return !castNode(ArrayExpr, node)->multidims;
        case T_Const:
        case T_List:
        case T_RelabelType:
        case T_CollateExpr:
        case T_BoolExpr:
        case T_BooleanTest:
        case T_NullTest:
        case T_CaseExpr:
        case T_CaseWhen:
        case T_CaseTestExpr:
        case T_CoalesceExpr:
            return true;
        case T_FuncExpr:
            return !castNode(FuncExpr, node)->funcretset &&
                   !check_functions_in_node(node, may_raise_or_change, nullptr);
        case T_OpExpr:
            return !castNode(OpExpr, node)->opretset && !check_functions_in_node(node, may_raise_or_change, nullptr);
        case T_DistinctExpr:
        case T_NullIfExpr:
        case T_ScalarArrayOpExpr:
            return !check_functions_in_node(node, may_raise_or_change, nullptr);
        default:
            return false;
    }
}

bool may_evaluate_ahead(Node* expression)
{
    return !is_harmful(expression, nullptr);
}

}  // namespace pgwarp
