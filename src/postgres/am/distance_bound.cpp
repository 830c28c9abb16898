#include "postgres/am/distance_bound.h"

#include <cmath>
#include <limits>
#include <utility>

#include "postgres/am/index_columns.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

constexpr char operator_prefix[] = "pgwarp_text_";  // of C functions of operators that have an integer form
constexpr char integer_prefix[] = "pgwarp_";
constexpr char negative_infix[] = "negative_";  // of C functions of operators that return a negative
constexpr char vector_infix[] = "vector_";
constexpr char limited_suffix[] = "_at_most";  // of integer forms that end at a limit, their third argument

enum class Comparing : uint8 { none, left, right };  // the side of the value

struct BoundFunction {
    Oid function;
    Comparing value;
    bool strict;
};

constexpr BoundFunction bound_functions[] = {
    {F_FLOAT8LE, Comparing::right, false},  {F_FLOAT8LT, Comparing::right, true},
    {F_FLOAT8GE, Comparing::left, false},   {F_FLOAT8GT, Comparing::left, true},
    {F_FLOAT84LE, Comparing::right, false}, {F_FLOAT84LT, Comparing::right, true},
    {F_FLOAT48GE, Comparing::left, false},  {F_FLOAT48GT, Comparing::left, true},
    {F_INT4LE, Comparing::right, false},    {F_INT4LT, Comparing::right, true},
    {F_INT4GE, Comparing::left, false},     {F_INT4GT, Comparing::left, true},
    {F_INT48LE, Comparing::right, false},   {F_INT48LT, Comparing::right, true},
    {F_INT84GE, Comparing::left, false},    {F_INT84GT, Comparing::left, true},
    {F_INT42LE, Comparing::right, false},   {F_INT42LT, Comparing::right, true},
    {F_INT24GE, Comparing::left, false},    {F_INT24GT, Comparing::left, true},
};

// The C function behind a function: its symbol and its library. Both are palloc'ed; false for other languages.
bool read_c_function(Oid function, char** symbol, char** library)
{
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return false;
    bool is_null = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->prolang != ClanguageId;
    Datum value = 0;
    if (!is_null) value = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_probin, &is_null);
    if (!is_null) *library = TextDatumGetCString(value);
    if (!is_null) value = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &is_null);
    if (!is_null) *symbol = TextDatumGetCString(value);
    ReleaseSysCache(tuple);
    return !is_null;
}

// Whether the first function returns as an integer what the operator's function returns as a float. `suffix`: of its
// name.
bool is_integer_form(Oid function, Oid of_operator, const char* suffix)
{
    char* symbol = nullptr;
    char* library = nullptr;
    char* operator_symbol = nullptr;
    char* operator_library = nullptr;
    return read_c_function(of_operator, &operator_symbol, &operator_library) &&
           strncmp(operator_symbol, operator_prefix, strlen(operator_prefix)) == 0 &&
           read_c_function(function, &symbol, &library) && strcmp(library, operator_library) == 0 &&
           strncmp(symbol, integer_prefix, strlen(integer_prefix)) == 0 &&
           strcmp(symbol + strlen(integer_prefix),
                  psprintf("%s%s", operator_symbol + strlen(operator_prefix), suffix)) == 0;
}

// The arguments of an expression that is an operator's distance; NIL for other expressions.
struct DistanceArguments {
    List* arguments;
    bool swapped;  // they belong to the operator's commutator
    Oid collation;
};

// Whether a limited distance is at most `value` just where the distance is: the limit is no less than the value.
bool limits_beyond(Node* limit, Node* value)
{
    if (value == nullptr || equal(limit, value)) return value != nullptr;
    if (!IsA(limit, Const) || !IsA(value, Const)) return false;
    const auto* most = castNode(Const, limit);
    const auto* bound = castNode(Const, value);
    return !most->constisnull && !bound->constisnull &&
           bound_as_double(bound->constvalue, bound->consttype) <= bound_as_double(most->constvalue, most->consttype);
}

// `value`: the bound of the expression, or null.
DistanceArguments read_distance(Node* expression, Oid of_operator, Node* value)
{
    if (IsA(expression, OpExpr)) {
        const auto* distance = castNode(OpExpr, expression);
        if (distance->opno == of_operator) return {distance->args, false, distance->inputcollid};
        if (distance->opno == get_commutator(of_operator)) return {distance->args, true, distance->inputcollid};
    } else if (IsA(expression, FuncExpr)) {
        const auto* distance = castNode(FuncExpr, expression);
        const Oid function = get_opcode(of_operator);
        if (list_length(distance->args) == 2) {
            if (distance->funcid == function || is_integer_form(distance->funcid, function, ""))
                return {distance->args, false, distance->inputcollid};
            const Oid commutator = get_commutator(of_operator);
            if (OidIsValid(commutator) && distance->funcid == get_opcode(commutator))
                return {distance->args, true, distance->inputcollid};
        }
        if (list_length(distance->args) == 3 && limits_beyond(static_cast<Node*>(lthird(distance->args)), value) &&
            is_integer_form(distance->funcid, function, limited_suffix))
            return {list_make2(linitial(distance->args), lsecond(distance->args)), false, distance->inputcollid};
    }
    return {NIL, false, InvalidOid};
}

bool commutes_with_itself(Oid of_operator)
{
    return get_commutator(of_operator) == of_operator;
}

// Returns the operator that orders the index: that for its key's type, or else a polymorphic one. Its right side may be
// of another type than the key.
Oid ordering_operator(const IndexOptInfo* index)
{
    const int column = vector_column(index);
    CatCList* members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(index->opfamily[column]));
    Oid found = InvalidOid;
    Oid polymorphic = InvalidOid;
    for (int i = 0; i < members->n_members; ++i) {
        const auto* member = reinterpret_cast<Form_pg_amop>(GETSTRUCT(&members->members[i]->tuple));
        if (member->amopstrategy != 1) continue;
        if (member->amoplefttype == index->opcintype[column] && !OidIsValid(found)) found = member->amopopr;
        if (IsPolymorphicType(member->amoplefttype)) polymorphic = member->amopopr;
    }
    ReleaseCatCacheList(members);
    return OidIsValid(found) ? found : polymorphic;
}

// Whether the arguments are the index's key and a query, in this order.
bool are_key_and_query(PlannerInfo* root, const IndexOptInfo* index, Node* key, Node* query)
{
    return match_index_to_operand(key, vector_column(index), const_cast<IndexOptInfo*>(index)) &&
           is_known_before(root, index->rel->relid, query);
}

// Returns the ordering expression with these arguments, the key on the left; null where they are not the index's key
// and a query.
OpExpr* make_distance(PlannerInfo* root, const IndexOptInfo* index, Oid ordering, const DistanceArguments& found)
{
    if (found.arguments == NIL) return nullptr;
    const Oid collation = index->indexcollations[vector_column(index)];
    if (OidIsValid(collation) && collation != found.collation) return nullptr;
    auto* key = static_cast<Node*>(linitial(found.arguments));
    auto* query = static_cast<Node*>(lsecond(found.arguments));
    const bool may_swap = found.swapped || commutes_with_itself(ordering);
    const bool in_order = !found.swapped && are_key_and_query(root, index, key, query);
    if (!in_order && !(may_swap && are_key_and_query(root, index, query, key))) return nullptr;
    if (!in_order) std::swap(key, query);
    Expr* made = make_opclause(ordering, get_op_rettype(ordering), false, reinterpret_cast<Expr*>(key),
                               reinterpret_cast<Expr*>(query), InvalidOid, found.collation);
    auto* distance = reinterpret_cast<OpExpr*>(made);
    set_opfuncid(distance);
    return distance;
}

// Whether an expression is a function of the same library that returns the negative of what the operator's function
// does: inner_product() of vector_negative_inner_product().
bool is_negative_form(const Node* expression, Oid of_operator)
{
    if (!IsA(expression, FuncExpr)) return false;
    const auto* function = reinterpret_cast<const FuncExpr*>(expression);
    char* symbol = nullptr;
    char* library = nullptr;
    char* operator_symbol = nullptr;
    char* operator_library = nullptr;
    if (list_length(function->args) != 2 || !read_c_function(of_operator, &operator_symbol, &operator_library))
        return false;
    const char* negative = strstr(operator_symbol, negative_infix);
    if (negative == nullptr || !read_c_function(function->funcid, &symbol, &library)) return false;
    const auto before = static_cast<int>(negative - operator_symbol);
    const char* after = negative + strlen(negative_infix);
    if (strcmp(library, operator_library) != 0) return false;
    if (strcmp(symbol, psprintf("%.*s%s", before, operator_symbol, after)) == 0) return true;
    // The name of the function on the type vector lacks the type.
    const auto type = static_cast<int>(strlen(vector_infix));
    return before >= type && strncmp(negative - type, vector_infix, strlen(vector_infix)) == 0 &&
           strcmp(symbol, psprintf("%.*s%s", before - type, operator_symbol, after)) == 0;
}

}  // namespace

bool is_known_before(PlannerInfo* root, Index relation, Node* expression)
{
    return !bms_is_member(static_cast<int>(relation), pull_varnos(root, expression)) &&
           !contain_volatile_functions(expression) && !contain_subplans(expression);
}

bool is_negative_distance(const Node* expression, const Node* distance)
{
    if (!IsA(distance, OpExpr)) return false;
    const auto* ordering = reinterpret_cast<const OpExpr*>(distance);
    if (!is_negative_form(expression, get_opcode(ordering->opno))) return false;
    List* arguments = reinterpret_cast<const FuncExpr*>(expression)->args;
    if (equal(arguments, ordering->args)) return true;
    List* swapped = list_make2(lsecond(arguments), linitial(arguments));
    return commutes_with_itself(ordering->opno) && equal(swapped, ordering->args);
}

bool split_bound(const Expr* clause, UpperBound* bound)
{
    if (!IsA(clause, OpExpr)) return false;
    const auto* comparison = reinterpret_cast<const OpExpr*>(clause);
    if (list_length(comparison->args) != 2) return false;
    const Oid function = OidIsValid(comparison->opfuncid) ? comparison->opfuncid : get_opcode(comparison->opno);
    for (const BoundFunction& known : bound_functions) {
        if (known.function != function) continue;
        auto* left = static_cast<Node*>(linitial(comparison->args));
        auto* right = static_cast<Node*>(lsecond(comparison->args));
        const bool value_right = known.value == Comparing::right;
        *bound = {value_right ? left : right, value_right ? right : left, known.strict};
        return true;
    }
    return false;
}

double bound_as_double(Datum value, Oid type)
{
    switch (type) {
        case INT2OID:
            return DatumGetInt16(value);
        case INT4OID:
            return DatumGetInt32(value);
        case INT8OID:
            return static_cast<double>(DatumGetInt64(value));
        default: {
            const double bound = type == FLOAT4OID ? double{DatumGetFloat4(value)} : DatumGetFloat8(value);
            return std::isnan(bound) ? std::numeric_limits<double>::infinity() : bound;
        }
    }
}

bool is_same_distance(Node* expression, const Node* distance, Node* bound)
{
    if (equal(expression, distance)) return true;
    if (!IsA(distance, OpExpr)) return false;
    const auto* ordering = reinterpret_cast<const OpExpr*>(distance);
    const DistanceArguments found = read_distance(expression, ordering->opno, bound);
    if (found.arguments == NIL) return false;
    List* swapped = list_make2(lsecond(found.arguments), linitial(found.arguments));
    if (equal(found.swapped ? swapped : found.arguments, ordering->args)) return true;
    return commutes_with_itself(ordering->opno) && equal(swapped, ordering->args);
}

OpExpr* find_bounded_distance(PlannerInfo* root, const IndexOptInfo* index, const RestrictInfo* info)
{
    UpperBound bound;
    if (info->pseudoconstant || !split_bound(info->clause, &bound)) return nullptr;
    if (!is_known_before(root, index->rel->relid, bound.value)) return nullptr;
    const Oid ordering = ordering_operator(index);
    if (!OidIsValid(ordering)) return nullptr;
    return make_distance(root, index, ordering, read_distance(bound.bounded, ordering, bound.value));
}

OpExpr* find_ordering_distance(PlannerInfo* root, const IndexOptInfo* index, Node* expression, bool* negative)
{
    const Oid ordering = ordering_operator(index);
    if (!OidIsValid(ordering)) return nullptr;
    DistanceArguments found = read_distance(expression, ordering, nullptr);
    *negative = found.arguments == NIL && is_negative_form(expression, get_opcode(ordering));
    if (*negative) {
        const auto* function = castNode(FuncExpr, expression);
        found = {function->args, false, function->inputcollid};
    }
    return make_distance(root, index, ordering, found);
}

bool bounds_distance(PlannerInfo* root, Index relation, const RestrictInfo* info, const Node* distance)
{
    UpperBound bound;
    return !info->pseudoconstant && split_bound(info->clause, &bound) &&
           is_same_distance(bound.bounded, distance, bound.value) && is_known_before(root, relation, bound.value);
}

}  // namespace pgwarp
