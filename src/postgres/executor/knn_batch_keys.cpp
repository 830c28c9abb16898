#include "postgres/executor/knn_batch_keys.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
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

// Whether two keys are the same condition, with whatever value.
bool are_alike(const ScanKeyData& key, const ScanKeyData& other)
{
    constexpr int kind = SK_SEARCHARRAY | SK_SEARCHNULL | SK_SEARCHNOTNULL;
    return key.sk_attno == other.sk_attno && key.sk_strategy == other.sk_strategy &&
           key.sk_subtype == other.sk_subtype && key.sk_func.fn_oid == other.sk_func.fn_oid &&
           key.sk_collation == other.sk_collation && (key.sk_flags & kind) == (other.sk_flags & kind);
}

// Replaces the value of a key by a copy of another key's.
void take_value(const ScanKeyData& given, ScanKeyData* key)
{
    const bool is_null = (given.sk_flags & SK_ISNULL) != 0;
    const bool was_null = (key->sk_flags & SK_ISNULL) != 0;
    int16 length = -1;
    bool by_value = false;
    if ((key->sk_flags & SK_SEARCHARRAY) == 0) get_typlenbyval(key->sk_subtype, &length, &by_value);
    if (!is_null && !was_null && datumIsEqual(key->sk_argument, given.sk_argument, by_value, length)) return;
    if (!was_null && !by_value) pfree(DatumGetPointer(key->sk_argument));
    key->sk_argument = is_null ? Datum{0} : datumCopy(given.sk_argument, by_value, length);
    key->sk_flags = (key->sk_flags & ~SK_ISNULL) | (is_null ? SK_ISNULL : 0);
}

}  // namespace

struct BatchKeys {
    int count;
    ScanKeyData* keys;
    ExprState** values;  // null for IS [NOT] NULL, and where the value is the scan's
    bool* of_scan;       // [count]
    bool takes_values;   // any is the scan's
    bool known;          // a scan has given these values
    MemoryContext context;
};

Node* value_of_condition(const Expr* condition)
{
    if (IsA(condition, OpExpr)) return static_cast<Node*>(lsecond(reinterpret_cast<const OpExpr*>(condition)->args));
    if (!IsA(condition, ScalarArrayOpExpr)) return nullptr;
    return static_cast<Node*>(lsecond(reinterpret_cast<const ScalarArrayOpExpr*>(condition)->args));
}

bool is_value_of_scan(Node* value)
{
    return !contain_var_clause(value) && !contain_volatile_functions(value);
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

bool add_batch_keys(const List* clauses, KnnBatchPlan* plan)
{
    ListCell* cell;
    foreach (cell, clauses) {
        const auto* clause = lfirst_node(IndexClause, cell);
        ListCell* qual;
        foreach (qual, clause->indexquals) {
            const Expr* condition = lfirst_node(RestrictInfo, qual)->clause;
            auto* value = reinterpret_cast<Expr*>(value_of_condition(condition));
            if (!add_batch_key(condition, clause->indexcol, value, plan)) return false;
        }
    }
    return true;
}

BatchKeys* prepare_batch_keys(const KnnBatchPlan& plan, Relation index, PlanState* node)
{
    if (plan.keys == NIL) return nullptr;
    auto* made = static_cast<BatchKeys*>(palloc0(sizeof(BatchKeys)));
    made->count = list_length(plan.keys);
    made->keys = static_cast<ScanKeyData*>(palloc0(sizeof(ScanKeyData) * static_cast<Size>(made->count)));
    made->values = static_cast<ExprState**>(palloc0(sizeof(ExprState*) * static_cast<Size>(made->count)));
    made->of_scan = static_cast<bool*>(palloc0(sizeof(bool) * static_cast<Size>(made->count)));
    made->context = CurrentMemoryContext;
    for (int i = 0; i < made->count; ++i) {
        describe_scan_key(static_cast<const List*>(list_nth(plan.keys, i)), index, &made->keys[i]);
        auto* value = static_cast<Expr*>(list_nth(plan.values, i));
        if (value != nullptr) made->values[i] = ExecInitExpr(value, node);
        made->of_scan[i] = value == nullptr && (made->keys[i].sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL)) == 0;
        if (made->of_scan[i]) made->keys[i].sk_flags |= SK_ISNULL;
        made->takes_values |= made->of_scan[i];
    }
    return made;
}

bool takes_values_of_scan(const BatchKeys* keys)
{
    return keys != nullptr && keys->takes_values;
}

bool awaits_scan(const BatchKeys* keys)
{
    return takes_values_of_scan(keys) && !keys->known;
}

void await_scan(BatchKeys* keys)
{
    if (keys != nullptr) keys->known = false;
}

void note_scan_keys(BatchKeys* keys, const ScanKeyData* given, int count)
{
    if (count != keys->count) return;
    for (int i = 0; i < count; ++i) {
        if (!are_alike(keys->keys[i], given[i])) return;
    }
    MemoryContext outer = MemoryContextSwitchTo(keys->context);
    for (int i = 0; i < count; ++i) {
        if (keys->of_scan[i]) take_value(given[i], &keys->keys[i]);
    }
    keys->known = true;
    MemoryContextSwitchTo(outer);
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
