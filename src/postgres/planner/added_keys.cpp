#include "postgres/planner/added_keys.h"

#include "postgres/am/index_columns.h"
#include "postgres/planner/custom_path.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
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

// A column of an index to filter by.
struct KeyColumn {
    IndexOptInfo* index;
    int number;
};

bool is_column(const KeyColumn& column, Node* expression)
{
    return match_index_to_operand(expression, column.number, column.index);
}

// Whether an operator of a clause belongs to the column's family, under the column's collation.
bool is_key_operator(const KeyColumn& column, Oid operator_oid, Oid collation)
{
    const Oid own = column.index->indexcollations[column.number];
    return (!OidIsValid(own) || own == collation) &&
           op_in_opfamily(operator_oid, column.index->opfamily[column.number]);
}

// Whether a value is known before the relation is read.
bool is_known_before(PlannerInfo* root, const KeyColumn& column, Node* value)
{
    const auto relation = static_cast<int>(column.index->rel->relid);
    return !bms_is_member(relation, pull_varnos(root, value)) && !contain_volatile_functions(value);
}

// `column = ANY (array)` as it is.
Expr* key_of_array(PlannerInfo* root, const KeyColumn& column, Expr* clause)
{
    if (!IsA(clause, ScalarArrayOpExpr)) return nullptr;
    auto* any = castNode(ScalarArrayOpExpr, clause);
    if (!any->useOr || !is_key_operator(column, any->opno, any->inputcollid)) return nullptr;
    const bool known = is_column(column, static_cast<Node*>(linitial(any->args))) &&
                       is_known_before(root, column, static_cast<Node*>(lsecond(any->args)));
    return known ? clause : nullptr;
}

Expr* boolean_key(Expr* column, bool value)
{
    return make_opclause(BooleanEqualOperator, BOOLOID, false, column,
                         reinterpret_cast<Expr*>(makeBoolConst(value, false)), InvalidOid, InvalidOid);
}

// `column`, `NOT column`, `column IS TRUE`, `column IS FALSE` as `column = value`.
Expr* key_of_boolean(const KeyColumn& column, Expr* clause)
{
    if (!is_key_operator(column, BooleanEqualOperator, InvalidOid)) return nullptr;
    if (is_column(column, reinterpret_cast<Node*>(clause))) return boolean_key(clause, true);
    if (is_notclause(clause)) {
        Expr* negated = get_notclausearg(clause);
        return is_column(column, reinterpret_cast<Node*>(negated)) ? boolean_key(negated, false) : nullptr;
    }
    if (!IsA(clause, BooleanTest)) return nullptr;
    const auto* test = castNode(BooleanTest, clause);
    if (test->booltesttype != IS_TRUE && test->booltesttype != IS_FALSE) return nullptr;
    if (!is_column(column, reinterpret_cast<Node*>(test->arg))) return nullptr;
    return boolean_key(test->arg, test->booltesttype == IS_TRUE);
}

// The value that an arm of an OR list compares the column with for equality, and its operator; null for another arm.
Expr* compared_value(PlannerInfo* root, const KeyColumn& column, Expr* arm, Oid* operator_oid)
{
    if (!IsA(arm, OpExpr) || list_length(castNode(OpExpr, arm)->args) != 2) return nullptr;
    auto* comparison = castNode(OpExpr, arm);
    auto* left = static_cast<Node*>(linitial(comparison->args));
    auto* right = static_cast<Node*>(lsecond(comparison->args));
    *operator_oid = comparison->opno;
    if (!is_column(column, left)) {
        *operator_oid = get_commutator(comparison->opno);
        Node* swapped = left;
        left = right;
        right = swapped;
    }
    if (!OidIsValid(*operator_oid) || !is_column(column, left) || !is_known_before(root, column, right)) return nullptr;
    if (!is_key_operator(column, *operator_oid, comparison->inputcollid)) return nullptr;
    const int strategy = get_op_opfamily_strategy(*operator_oid, column.index->opfamily[column.number]);
    return strategy == BTEqualStrategyNumber ? reinterpret_cast<Expr*>(right) : nullptr;
}

Expr* column_of_arm(const KeyColumn& column, Expr* arm)
{
    auto* left = static_cast<Node*>(linitial(castNode(OpExpr, arm)->args));
    return static_cast<Expr*>(is_column(column, left) ? linitial(castNode(OpExpr, arm)->args)
                                                      : lsecond(castNode(OpExpr, arm)->args));
}

// `column = a OR column = b` as `column = ANY (ARRAY[a, b])`. All arms have one operator.
Expr* key_of_or_list(PlannerInfo* root, const KeyColumn& column, Expr* clause)
{
    if (!is_orclause(clause)) return nullptr;
    List* arms = castNode(BoolExpr, clause)->args;
    List* values = NIL;
    Oid common = InvalidOid;
    ListCell* cell;
    foreach (cell, arms) {
        Oid operator_oid = InvalidOid;
        Expr* value = compared_value(root, column, static_cast<Expr*>(lfirst(cell)), &operator_oid);
        if (value == nullptr || (OidIsValid(common) && common != operator_oid)) return nullptr;
        common = operator_oid;
        values = lappend(values, value);
    }
    Oid left = InvalidOid;
    Oid right = InvalidOid;
    op_input_types(common, &left, &right);
    auto* first = static_cast<Expr*>(linitial(arms));
    if (IsPolymorphicType(right)) right = exprType(static_cast<Node*>(linitial(values)));
    const Oid array_type = get_array_type(right);
    if (!OidIsValid(array_type)) return nullptr;
    ArrayExpr* array = makeNode(ArrayExpr);
    array->array_typeid = array_type;
    array->array_collid = exprCollation(static_cast<Node*>(linitial(values)));
    array->element_typeid = right;
    array->elements = values;
    array->location = -1;
    ScalarArrayOpExpr* any = makeNode(ScalarArrayOpExpr);
    any->opno = common;
    any->opfuncid = get_opcode(common);
    any->useOr = true;
    any->inputcollid = castNode(OpExpr, first)->inputcollid;
    any->args = list_make2(column_of_arm(column, first), array);
    any->location = -1;
    return reinterpret_cast<Expr*>(eval_const_expressions(root, reinterpret_cast<Node*>(any)));
}

// `column operator value`; also for `value operator column`.
Expr* key_of_comparison(PlannerInfo* root, const KeyColumn& column, Expr* clause)
{
    if (!IsA(clause, OpExpr) || list_length(castNode(OpExpr, clause)->args) != 2) return nullptr;
    auto* comparison = castNode(OpExpr, clause);
    auto* left = static_cast<Node*>(linitial(comparison->args));
    auto* right = static_cast<Node*>(lsecond(comparison->args));
    if (is_column(column, left)) {
        const bool known = is_known_before(root, column, right);
        return known && is_key_operator(column, comparison->opno, comparison->inputcollid) ? clause : nullptr;
    }
    const Oid swapped = get_commutator(comparison->opno);
    if (!OidIsValid(swapped) || !is_column(column, right) || !is_known_before(root, column, left)) return nullptr;
    if (!is_key_operator(column, swapped, comparison->inputcollid)) return nullptr;
    Expr* key = make_opclause(swapped, BOOLOID, false, reinterpret_cast<Expr*>(right), reinterpret_cast<Expr*>(left),
                              InvalidOid, comparison->inputcollid);
    set_opfuncid(castNode(OpExpr, key));
    return key;
}

Expr* key_of_null_test(const KeyColumn& column, Expr* clause)
{
    if (!IsA(clause, NullTest) || castNode(NullTest, clause)->argisrow) return nullptr;
    return is_column(column, reinterpret_cast<Node*>(castNode(NullTest, clause)->arg)) ? clause : nullptr;
}

// Returns the clause as a key of the column; null where it is none.
Expr* key_of_clause(PlannerInfo* root, const KeyColumn& column, Expr* clause)
{
    if (Expr* key = key_of_comparison(root, column, clause)) return key;
    if (Expr* key = key_of_null_test(column, clause)) return key;
    if (Expr* key = key_of_array(root, column, clause)) return key;
    if (Expr* key = key_of_or_list(root, column, clause)) return key;
    return key_of_boolean(column, clause);
}

IndexClause* find_key(PlannerInfo* root, RelOptInfo* rel, const IndexPath* path, RestrictInfo* info)
{
    if (info->pseudoconstant || is_redundant_with_indexclauses(info, path->indexclauses)) return nullptr;
    if (!restriction_is_securely_promotable(info, rel)) return nullptr;
    IndexOptInfo* index = path->indexinfo;
    const int vector = vector_column(index);
    for (int i = 0; i < index->nkeycolumns; ++i) {
        if (i == vector) continue;
        Expr* key = key_of_clause(root, {index, i}, info->clause);
        if (key == nullptr) continue;
        IndexClause* made = makeNode(IndexClause);
        made->rinfo = info;
        made->indexquals = list_make1(key == info->clause ? info : make_simple_restrictinfo(root, key));
        made->lossy = false;
        made->indexcol = static_cast<AttrNumber>(i);
        return made;
    }
    return nullptr;
}

int compare_columns(const ListCell* a, const ListCell* b)
{
    return lfirst_node(IndexClause, a)->indexcol - lfirst_node(IndexClause, b)->indexcol;
}

}  // namespace

IndexPath* with_added_keys(PlannerInfo* root, RelOptInfo* rel, IndexPath* path)
{
    if (path->indexinfo->nkeycolumns < 2 || list_length(path->indexorderbys) != 1) return path;
    List* clauses = list_copy(path->indexinfo->indrestrictinfo);
    if (path->path.param_info != nullptr) {
        clauses = list_concat(clauses, list_copy(path->path.param_info->ppi_clauses));
    }
    List* keys = NIL;
    ListCell* cell;
    foreach (cell, clauses) {
        IndexClause* key = find_key(root, rel, path, lfirst_node(RestrictInfo, cell));
        if (key != nullptr) keys = lappend(keys, key);
    }
    if (keys == NIL) return path;
    // PostgreSQL expects keys in the order of their columns.
    keys = list_concat(list_copy(path->indexclauses), keys);
    list_sort(keys, compare_columns);
    Relids outer = PATH_REQ_OUTER(&path->path);
    return create_index_path(root, path->indexinfo, keys, path->indexorderbys, path->indexorderbycols,
                             path->path.pathkeys, path->indexscandir, false, outer, loops_over(root, outer), false);
}

}  // namespace pgwarp
