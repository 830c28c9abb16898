// amvalidate: checks an operator class made for one of the methods. It orders by a distance, or filters.
#include "postgres/am/aliases.h"
#include "postgres/am/attribute_code.h"
#include "postgres/am/callbacks.h"
#include "postgres/am/element_type.h"

extern "C" {
#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

// Reports a fault of an operator family, as other access methods do.
bool complain(Oid family, const char* what)
{
    ereport(INFO, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                   errmsg("operator family %u of a pgwarp access method %s", family, what)));
    return false;
}

// Checks an operator of a family that orders: it returns a distance.
bool validate_distance(Oid family, const FormData_pg_amop& entry)
{
    if (entry.amoppurpose != AMOP_ORDER) return complain(family, "has an operator that is not FOR ORDER BY");
    if (opfamily_can_sort_type(entry.amopsortfamily, get_op_rettype(entry.amopopr))) return true;
    return complain(family, "has an ordering operator with a wrong sort family");
}

// Checks an operator of a family that filters: it compares values that have codes.
bool validate_comparison(Oid family, const FormData_pg_amop& entry)
{
    const CodeForm form = code_form(entry.amoplefttype);
    if (entry.amoppurpose != AMOP_SEARCH) return complain(family, "filters, and has an operator FOR ORDER BY");
    if (entry.amopstrategy < BTLessStrategyNumber || entry.amopstrategy > BTGreaterStrategyNumber) {
        return complain(family, "has a comparison with another strategy number than btree's");
    }
    if (!check_amop_signature(entry.amopopr, BOOLOID, entry.amoplefttype, entry.amoprighttype)) {
        return complain(family, "has a comparison of other types, or one that is not boolean");
    }
    if (!are_comparable(form, code_form(entry.amoprighttype))) {
        return complain(family, "has a comparison of values that have no codes in common");
    }
    if (entry.amopstrategy != BTEqualStrategyNumber && !is_ordered(form) && form != CodeForm::enumeration) {
        return complain(family, "has a comparison of values whose codes have no order");
    }
    if (!OidIsValid(get_opfamily_member(family, entry.amoplefttype, entry.amoprighttype, BTEqualStrategyNumber))) {
        return complain(family, "has a comparison of types without equality");
    }
    return true;
}

bool validate_operators(Oid family, bool filters)
{
    bool valid = true;
    CatCList* operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
    if (operators->n_members == 0) valid = complain(family, "has no operator");
    for (int i = 0; i < operators->n_members; ++i) {
        const auto* entry = reinterpret_cast<Form_pg_amop>(GETSTRUCT(&operators->members[i]->tuple));
        if (!(filters ? validate_comparison : validate_distance)(family, *entry)) valid = false;
    }
    ReleaseCatCacheList(operators);
    return valid;
}

// Whether a family has an operator that filters.
bool has_comparison(Oid family)
{
    bool found = false;
    CatCList* operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
    for (int i = 0; i < operators->n_members; ++i) {
        const auto* entry = reinterpret_cast<Form_pg_amop>(GETSTRUCT(&operators->members[i]->tuple));
        if (entry->amoppurpose == AMOP_SEARCH) found = true;
    }
    ReleaseCatCacheList(operators);
    return found;
}

// Checks that support function 1, the metric's, is there just where the family orders. The others are optional:
// function 2 came with version 0.2.0.
bool validate_support(Oid family, bool filters)
{
    bool found = false;
    bool valid = true;
    CatCList* functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));
    for (int i = 0; i < functions->n_members; ++i) {
        HeapTuple tuple = &functions->members[i]->tuple;
        const auto* entry = reinterpret_cast<Form_pg_amproc>(GETSTRUCT(tuple));
        if (entry->amprocnum < metric_support || entry->amprocnum > last_support) {
            valid = complain(family, "has an unknown support function");
        } else if (!check_amproc_signature(entry->amproc, INT4OID, true, 1, 1, INTERNALOID)) {
            valid = complain(family, "has a support function of another signature than integer(internal)");
        } else if (entry->amprocnum == metric_support) {
            found = true;
        }
    }
    const bool any = functions->n_members > 0;
    ReleaseCatCacheList(functions);
    if (filters && any) valid = complain(family, "filters, and has support functions");
    if (!filters && valid && !found) valid = complain(family, "lacks support function 1");
    return valid;
}

}  // namespace

bool validate_operator_class(Oid operator_class)
{
    HeapTuple tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(operator_class));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for operator class %u", operator_class);
    const Oid family = reinterpret_cast<Form_pg_opclass>(GETSTRUCT(tuple))->opcfamily;
    const Oid input_type = reinterpret_cast<Form_pg_opclass>(GETSTRUCT(tuple))->opcintype;
    ReleaseSysCache(tuple);
    // One class filters by all types: a key of PostgreSQL's own polymorphic type is no vector.
    const bool filters = input_type == ANYELEMENTOID && has_comparison(family);
    const bool operators = validate_operators(family, filters);
    const bool support = validate_support(family, filters);
    return operators && support;
}

bool validate_alias_class(Oid operator_class)
{
    HeapTuple tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(operator_class));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for operator class %u", operator_class);
    const Oid family = reinterpret_cast<Form_pg_opclass>(GETSTRUCT(tuple))->opcfamily;
    const Oid input = reinterpret_cast<Form_pg_opclass>(GETSTRUCT(tuple))->opcintype;
    ReleaseSysCache(tuple);
    constexpr int16 norm_support = 2;
    ElementType element;
    Metric metric;
    const bool has_norm = OidIsValid(get_opfamily_proc(family, input, input, norm_support));
    if (!find_class_kind(get_opfamily_proc(family, input, input, metric_support), has_norm, &element, &metric)) {
        return complain(family, "has a support function 1 that is none of pgvector's");
    }
    return validate_operators(family, false);
}

}  // namespace pgwarp
