// Element types of SQL types, read from the catalogs.
#include "postgres/am/element_type.h"

#include "postgres/am/methods.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

bool is_vector(ElementType element)
{
    return element == ElementType::float32 || element == ElementType::float16 || element == ElementType::bit;
}

bool element_of_number(int32 number, ElementType* element)
{
    *element = static_cast<ElementType>(number);
    return is_vector(*element) || is_list(*element);
}

// A text column of a function's catalog row, or "".
const char* function_text(Oid function, AttrNumber column)
{
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return "";
    bool null = false;
    const Datum value = SysCacheGetAttr(PROCOID, tuple, column, &null);
    const char* found = null ? "" : TextDatumGetCString(value);
    ReleaseSysCache(tuple);
    return found;
}

// Operator classes of version 0.1.0 have no support function 2. Their type is recognised by the catalog row of its
// output function: that function lies in the library of the metric's support function, under a C name that version
// 0.1.0 or an update of it gave.
bool element_by_output(Oid type, Oid metric_function, ElementType* element)
{
    Oid output = InvalidOid;
    bool is_varlena = false;
    getTypeOutputInfo(type, &output, &is_varlena);
    if (strcmp(function_text(output, Anum_pg_proc_probin), function_text(metric_function, Anum_pg_proc_probin)) != 0) {
        return false;
    }
    const char* name = function_text(output, Anum_pg_proc_prosrc);
    const bool is_vector = strcmp(name, "vector_out") == 0 || strcmp(name, "pgwarp_vector_out") == 0;
    const bool is_halfvec = strcmp(name, "halfvec_out") == 0 || strcmp(name, "pgwarp_halfvec_out") == 0;
    *element = is_halfvec ? ElementType::float16 : ElementType::float32;
    return is_vector || is_halfvec;
}

// Whether this library implements the access method.
bool is_own_method(Oid access_method)
{
    const IndexAmRoutine* routine = GetIndexAmRoutineByAmId(access_method, true);
    const bool own = routine != nullptr && find_access_method(routine->amoptions) != nullptr;
#if PG_VERSION_NUM < 190000
    if (routine != nullptr) pfree(const_cast<IndexAmRoutine*>(routine));
#endif
    return own;
}

// The type's default operator class for any of the methods; InvalidOid when the type has none.
Oid find_operator_class(Oid type)
{
    for (const MethodDescription* description : method_descriptions()) {
        const Oid method = get_am_oid(description->name, true);
        if (!OidIsValid(method) || !is_own_method(method)) continue;
        const Oid found = GetDefaultOpClass(type, method);
        if (OidIsValid(found) && get_opclass_input_type(found) == type) return found;
    }
    return InvalidOid;
}

bool is_bit_type(Oid type)
{
    return type == BITOID || type == VARBITOID;
}

}  // namespace

bool find_element_type(Oid type, ElementType* element)
{
    const Oid base = getBaseType(type);
    if (is_bit_type(base)) {
        *element = ElementType::bit;
        return true;
    }
    const Oid operator_class = find_operator_class(base);
    if (!OidIsValid(operator_class)) return false;
    const Oid family = get_opclass_family(operator_class);
    const Oid function = get_opfamily_proc(family, base, base, element_support);
    if (OidIsValid(function)) {
        *element = static_cast<ElementType>(DatumGetInt32(OidFunctionCall1(function, Datum{0})));
        return is_vector(*element);
    }
    return element_by_output(base, get_opfamily_proc(family, base, base, metric_support), element);
}

static void refuse_key(Relation index)
{
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("index \"%s\" cannot have values of type %s", RelationGetRelationName(index),
                           format_type_be(vector_type(index)))));
}

ElementType index_element_type(Relation index)
{
    ElementType element = ElementType::float32;
    if (find_alias(index) != nullptr) {
        Metric metric = Metric::l2;
        read_class_kind(index, &element, &metric);
        return element;
    }
    const Oid type = vector_type(index);
    const auto column = static_cast<AttrNumber>(vector_column(index) + 1);
    bool known = false;
    if (OidIsValid(index_getprocid(index, column, element_support))) {
        FmgrInfo* function = index_getprocinfo(index, column, element_support);
        known = element_of_number(DatumGetInt32(FunctionCall1(function, Datum{0})), &element);
    } else if (is_bit_type(type)) {
        return ElementType::bit;
    } else {
        known = element_by_output(type, index_getprocid(index, column, metric_support), &element);
    }
    if (!known) refuse_key(index);
    return element;
}

Arithmetic index_arithmetic(Relation index)
{
    // Support functions of an alias are pgvector's, under its numbers.
    if (find_alias(index) != nullptr) return Arithmetic::canonical;
    const auto column = static_cast<AttrNumber>(vector_column(index) + 1);
    if (!OidIsValid(index_getprocid(index, column, arithmetic_support))) return Arithmetic::canonical;
    FmgrInfo* function = index_getprocinfo(index, column, arithmetic_support);
    const auto arithmetic = static_cast<Arithmetic>(DatumGetInt32(FunctionCall1(function, PointerGetDatum(nullptr))));
    if (arithmetic != Arithmetic::float32) refuse_key(index);
    return arithmetic;
}

KeyType index_key_type(Relation index)
{
    const ElementType element = index_element_type(index);
    const ListType* list = find_list_type(element, vector_type(index));
    const Arithmetic arithmetic = index_arithmetic(index);
    const bool rounds = arithmetic != Arithmetic::canonical;
    const bool known = !is_list(element) || (list != nullptr && (!rounds || element == ElementType::sparse));
    if (!known) refuse_key(index);
    return {element, list, arithmetic};
}

}  // namespace pgwarp
