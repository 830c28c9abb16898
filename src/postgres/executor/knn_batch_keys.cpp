#include "postgres/executor/knn_batch_keys.h"

extern "C" {
#include "executor/executor.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

enum class KeyKind : Oid { comparison = 0, any = 1, is_null = 2, is_not_null = 3 };

void add_key(KnnBatchPlan* plan, int column, KeyKind kind, Oid operator_oid, Oid collation, Expr* value)
{
    List* key = list_make4_oid(static_cast<Oid>(column), static_cast<Oid>(kind), operator_oid, collation);
    plan->keys = lappend(plan->keys, key);
    plan->values = lappend(plan->values, value);
}

// Fills all of a key but its argument.
void describe_scan_key(const List* described, Relation index, ScanKeyData* key)
{
    const auto column = static_cast<int>(linitial_oid(described));
    const auto kind = static_cast<KeyKind>(lsecond_oid(described));
    const auto number = static_cast<AttrNumber>(column + 1);
    if (kind == KeyKind::is_null || kind == KeyKind::is_not_null) {
        const int flags = SK_ISNULL | (kind == KeyKind::is_null ? SK_SEARCHNULL : SK_SEARCHNOTNULL);
        ScanKeyEntryInitialize(key, flags, number, InvalidStrategy, InvalidOid, InvalidOid, InvalidOid, 0);
        return;
    }
    const Oid operator_oid = lthird_oid(described);
    int strategy = 0;
    Oid left = InvalidOid;
    Oid right = InvalidOid;
    get_op_opfamily_properties(operator_oid, index->rd_opfamily[column], false, &strategy, &left, &right);
    ScanKeyEntryInitialize(key, kind == KeyKind::any ? SK_SEARCHARRAY : 0, number,
                           static_cast<StrategyNumber>(strategy), right, lfourth_oid(described),
                           get_opcode(operator_oid), 0);
}

}  // namespace

struct BatchKeys {
    int count;
    ScanKeyData* keys;
    ExprState** values;  // null for IS [NOT] NULL
};

Node* value_of_condition(const Expr* condition)
{
    if (IsA(condition, OpExpr)) return static_cast<Node*>(lsecond(reinterpret_cast<const OpExpr*>(condition)->args));
    if (!IsA(condition, ScalarArrayOpExpr)) return nullptr;
    return static_cast<Node*>(lsecond(reinterpret_cast<const ScalarArrayOpExpr*>(condition)->args));
}

bool add_batch_key(const Expr* condition, int column, Expr* value, KnnBatchPlan* plan)
{
    if (IsA(condition, OpExpr)) {
        const auto* comparison = reinterpret_cast<const OpExpr*>(condition);
        add_key(plan, column, KeyKind::comparison, comparison->opno, comparison->inputcollid, value);
        return true;
    }
    if (IsA(condition, ScalarArrayOpExpr)) {
        const auto* any = reinterpret_cast<const ScalarArrayOpExpr*>(condition);
        add_key(plan, column, KeyKind::any, any->opno, any->inputcollid, value);
        return any->useOr;
    }
    if (!IsA(condition, NullTest)) return false;
    const bool null = reinterpret_cast<const NullTest*>(condition)->nulltesttype == IS_NULL;
    add_key(plan, column, null ? KeyKind::is_null : KeyKind::is_not_null, InvalidOid, InvalidOid, nullptr);
    return true;
}

BatchKeys* prepare_batch_keys(const KnnBatchPlan& plan, Relation index, PlanState* node)
{
    if (plan.keys == NIL) return nullptr;
    auto* made = static_cast<BatchKeys*>(palloc0(sizeof(BatchKeys)));
    made->count = list_length(plan.keys);
    made->keys = static_cast<ScanKeyData*>(palloc0(sizeof(ScanKeyData) * static_cast<Size>(made->count)));
    made->values = static_cast<ExprState**>(palloc0(sizeof(ExprState*) * static_cast<Size>(made->count)));
    for (int i = 0; i < made->count; ++i) {
        describe_scan_key(static_cast<const List*>(list_nth(plan.keys, i)), index, &made->keys[i]);
        auto* value = static_cast<Expr*>(list_nth(plan.values, i));
        if (value != nullptr) made->values[i] = ExecInitExpr(value, node);
    }
    return made;
}

FilterKeys read_batch_keys(BatchKeys* keys, Relation index, ExprContext* context)
{
    for (int i = 0; i < keys->count; ++i) {
        if (keys->values[i] == nullptr) continue;
        bool is_null = false;
        ScanKeyData& key = keys->keys[i];
        key.sk_argument = ExecEvalExpr(keys->values[i], context, &is_null);
        key.sk_flags = (key.sk_flags & ~SK_ISNULL) | (is_null ? SK_ISNULL : 0);
    }
    return read_filter_keys(index, keys->keys, keys->count);
}

}  // namespace pgwarp
