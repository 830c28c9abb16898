// amvalidate: checks an operator class made for one of the methods.
#include "postgres/am/callbacks.h"
#include "postgres/am/element_type.h"

extern "C" {
#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
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

// Checks that every operator orders by a float8 distance.
bool validate_operators(Oid family)
{
    bool valid = true;
    CatCList* operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
    if (operators->n_members == 0) valid = complain(family, "has no operator");
    for (int i = 0; i < operators->n_members; ++i) {
        HeapTuple tuple = &operators->members[i]->tuple;
        const auto* entry = reinterpret_cast<Form_pg_amop>(GETSTRUCT(tuple));
        if (entry->amoppurpose != AMOP_ORDER) {
            valid = complain(family, "has an operator that is not FOR ORDER BY");
        } else if (!opfamily_can_sort_type(entry->amopsortfamily, get_op_rettype(entry->amopopr))) {
            valid = complain(family, "has an ordering operator with a wrong sort family");
        }
    }
    ReleaseCatCacheList(operators);
    return valid;
}

// Checks that support function 1, the metric's, is there. Function 2 is optional: it came with version 0.2.0.
bool validate_support(Oid family)
{
    bool found = false;
    bool valid = true;
    CatCList* functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));
    for (int i = 0; i < functions->n_members; ++i) {
        HeapTuple tuple = &functions->members[i]->tuple;
        const auto* entry = reinterpret_cast<Form_pg_amproc>(GETSTRUCT(tuple));
        if (entry->amprocnum != metric_support && entry->amprocnum != element_support) {
            valid = complain(family, "has an unknown support function");
        } else if (!check_amproc_signature(entry->amproc, INT4OID, true, 1, 1, INTERNALOID)) {
            valid = complain(family, "has a support function of another signature than integer(internal)");
        } else if (entry->amprocnum == metric_support) {
            found = true;
        }
    }
    ReleaseCatCacheList(functions);
    if (valid && !found) valid = complain(family, "lacks support function 1");
    return valid;
}

}  // namespace

bool validate_operator_class(Oid operator_class)
{
    HeapTuple tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(operator_class));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for operator class %u", operator_class);
    const Oid family = reinterpret_cast<Form_pg_opclass>(GETSTRUCT(tuple))->opcfamily;
    ReleaseSysCache(tuple);
    const bool operators = validate_operators(family);
    const bool support = validate_support(family);
    return operators && support;
}

}  // namespace pgwarp
