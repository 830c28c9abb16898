// Follows the expression of a sort key inwards to the distance. NULL and NaN sort after all numbers, ascending, so
// where an expression reverses the order they come on the other side: the scan is told (scan/limit_hint.h).
#include "postgres/planner/distance_order.h"

#include "numeric/float32_distance.h"
#include "postgres/am/around_bound.h"
#include "postgres/am/cost.h"
#include "postgres/am/distance_bound.h"
#include "postgres/am/distance_steps.h"
#include "postgres/am/element_type.h"
#include "postgres/am/index_columns.h"
#include "postgres/am/index_options.h"

extern "C" {
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_attribute.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

// The sort order of a key.
bool is_descending(const PathKey* key)
{
#if PG_VERSION_NUM >= 180000
    return key->pk_cmptype == COMPARE_GT;
#else
    return key->pk_strategy == BTGreaterStrategyNumber;
#endif
}

// The order by one of the expressions that a key sorts by.
DistanceOrder order_by(PlannerInfo* root, const IndexOptInfo* index, const PathKey* key, Node* expression)
{
    bool reversed = false;
    bool by_distance = true;
    while (expression != nullptr) {
        bool negative = false;
        if (OpExpr* distance = find_ordering_distance(root, index, expression, &negative)) {
            if (reversed != negative) return {distance, false, true, key->pk_nulls_first};
            return {distance, by_distance && !negative, false, key->pk_nulls_first};
        }
        const DistanceStep step = step_inwards(expression);
        if (step.direction == Direction::reversed) reversed = !reversed;
        expression = step.argument;
        by_distance = false;
    }
    return {};
}

// Whether the rows come in the direction of the key.
bool is_along(const DistanceOrder& order, const PathKey* key)
{
    return order.distance != nullptr && order.nans_first == is_descending(key);
}

// Returns the expressions of this relation that a key sorts by.
List* expressions_of(const PathKey* key, const RelOptInfo* rel)
{
    List* expressions = NIL;
#if PG_VERSION_NUM >= 180000
    EquivalenceMemberIterator members;
    setup_eclass_member_iterator(&members, key->pk_eclass, rel->relids);
    while (const EquivalenceMember* member = eclass_member_iterator_next(&members)) {
        if (bms_equal(member->em_relids, rel->relids)) expressions = lappend(expressions, member->em_expr);
    }
#else
    ListCell* cell;
    foreach (cell, key->pk_eclass->ec_members) {
        const auto* member = lfirst_node(EquivalenceMember, cell);
        if (bms_equal(member->em_relids, rel->relids)) expressions = lappend(expressions, member->em_expr);
    }
#endif
    return expressions;
}

// Whether rows may have a distance that is not a number: zero vectors under cosine. An operator that computes in
// float32 finds none either for sums of infinities, and for quotients of norms that over- or underflow.
bool may_find_nan(const IndexOptInfo* info)
{
    Relation index = index_open(info->indexoid, NoLock);
    const Metric metric = index_metric(index);
    const bool overflows = index_arithmetic(index) != Arithmetic::canonical && bounds_need_norms(metric);
    index_close(index, NoLock);
    return metric == Metric::cosine || overflows;
}

// Whether the table declares the column that the index orders by NOT NULL.
bool is_declared_not_null([[maybe_unused]] PlannerInfo* root, const IndexOptInfo* index)
{
    const int column = index->indexkeys[vector_column(index)];
    if (column <= 0) return false;
#if PG_VERSION_NUM >= 170000
    return bms_is_member(column, index->rel->notnullattnums);  // of valid constraints only
#else
    const Oid table = planner_rt_fetch(index->rel->relid, root)->relid;
    HeapTuple tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table), Int16GetDatum(static_cast<int16>(column)));
    if (!HeapTupleIsValid(tuple)) return false;
    const bool declared = reinterpret_cast<Form_pg_attribute>(GETSTRUCT(tuple))->attnotnull;
    ReleaseSysCache(tuple);
    return declared;
#endif
}

// Whether no row of the query has NULL in that column.
bool is_never_null(PlannerInfo* root, const IndexOptInfo* index, const OpExpr* distance)
{
    const auto* expression = reinterpret_cast<const Node*>(distance);
    ListCell* cell;
    foreach (cell, index->rel->baserestrictinfo) {
        const auto* clause = lfirst_node(RestrictInfo, cell);
        if (is_key_not_null(clause, expression) || bounds_distance(root, index->rel->relid, clause, expression) ||
            find_around_bound(root, index->rel->relid, clause, expression).found)
            return true;
    }
    return is_declared_not_null(root, index);
}

}  // namespace

KeyOrder read_key_order(PlannerInfo* root, const IndexPath* path)
{
    const IndexOptInfo* index = path->indexinfo;
    const auto* key = linitial_node(PathKey, path->path.pathkeys);
    const DistanceOrder order = find_distance_order(root, index, key);
    if (order.distance == nullptr) return {true, nullptr, {}};
    const Leading leading = {order.nulls_first && !is_never_null(root, index, order.distance),
                             order.nans_first && may_find_nan(index)};
    const Oid sort_family = make_own_key(index, order.distance)->pk_opfamily;
    if (order.by_distance && !leading.nulls && key->pk_opfamily == sort_family) return {true, nullptr, {}};
    return {false, order.distance, leading};
}

DistanceOrder find_distance_order(PlannerInfo* root, const IndexOptInfo* index, const PathKey* key)
{
    DistanceOrder found = {};
    if (key->pk_eclass == nullptr || key->pk_eclass->ec_has_volatile) return found;
    ListCell* cell;
    foreach (cell, expressions_of(key, index->rel)) {
        const DistanceOrder order = order_by(root, index, key, static_cast<Node*>(lfirst(cell)));
        if (is_along(order, key) && (found.distance == nullptr || order.by_distance)) found = order;
    }
    return found;
}

PathKey* make_own_key(const IndexOptInfo* index, const OpExpr* distance)
{
    PathKey* key = makeNode(PathKey);
    key->pk_opfamily = get_op_opfamily_sortfamily(distance->opno, index->opfamily[vector_column(index)]);
#if PG_VERSION_NUM >= 180000
    key->pk_cmptype = COMPARE_LT;
#else
    key->pk_strategy = BTLessStrategyNumber;
#endif
    return key;
}

}  // namespace pgwarp
