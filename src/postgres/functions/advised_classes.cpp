#include "postgres/functions/advised_classes.h"

#include "postgres/am/index_columns.h"
#include "postgres/am/methods.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "lib/stringinfo.h"
#include "nodes/value.h"
#include "parser/parse_coerce.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

// Returns the access method's oid; InvalidOid where there is none of this library.
Oid own_access_method(const MethodDescription& method)
{
    const Oid found = get_am_oid(method.name, true);
    if (!OidIsValid(found)) return InvalidOid;
    const IndexAmRoutine* routine = GetIndexAmRoutineByAmId(found, true);
    const bool own = routine != nullptr && find_access_method(routine->amoptions) == &method;
#if PG_VERSION_NUM < 190000
    if (routine != nullptr) pfree(const_cast<IndexAmRoutine*>(routine));
#endif
    return own ? found : InvalidOid;
}

int32 call_support(Oid function)
{
    return DatumGetInt32(OidFunctionCall1(function, PointerGetDatum(nullptr)));
}

// Returns the name of the operator that the family orders rows by; null where it has none.
const char* ordering_operator(Oid family)
{
    const char* name = nullptr;
    CatCList* members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
    for (int i = 0; i < members->n_members && name == nullptr; ++i) {
        const auto* member = reinterpret_cast<Form_pg_amop>(GETSTRUCT(&members->members[i]->tuple));
        if (member->amoppurpose == AMOP_ORDER) name = get_opname(member->amopopr);
    }
    ReleaseSysCacheList(members);
    return name;
}

const char* class_name(Oid operator_class, Form_pg_opclass form)
{
    const char* schema = OpclassIsVisible(operator_class) ? nullptr : get_namespace_name(form->opcnamespace);
    return quote_qualified_identifier(schema, NameStr(form->opcname));
}

// Returns null for a class that orders no rows by distance, as those of columns to filter by, and for one of another
// type.
AdvisedClass* read_class(const MethodDescription& method, Oid type, Form_pg_opclass form)
{
    const Oid input = form->opcintype;
    if (input != type && !(IsBinaryCoercible(type, input) && input != ANYELEMENTOID)) return nullptr;
    const Oid metric = get_opfamily_proc(form->opcfamily, input, input, metric_support);
    const Oid element = get_opfamily_proc(form->opcfamily, input, input, element_support);
    const char* operator_name = ordering_operator(form->opcfamily);
    if (!OidIsValid(metric) || !OidIsValid(element) || operator_name == nullptr) return nullptr;
    auto* found = static_cast<AdvisedClass*>(palloc0(sizeof(AdvisedClass)));
    found->method = &method;
    found->name = class_name(form->oid, form);
    found->operator_name = operator_name;
    found->element = static_cast<ElementType>(call_support(element));
    found->metric = static_cast<Metric>(call_support(metric));
    found->is_default = form->opcdefault;
    return found;
}

// Returns all classes of the type.
List* find_classes(Oid type)
{
    List* found = NIL;
    for (const MethodDescription* method : method_descriptions()) {
        const Oid access_method = own_access_method(*method);
        if (!OidIsValid(access_method)) continue;
        CatCList* classes = SearchSysCacheList1(CLAAMNAMENSP, ObjectIdGetDatum(access_method));
        for (int i = 0; i < classes->n_members; ++i) {
            auto* form = reinterpret_cast<Form_pg_opclass>(GETSTRUCT(&classes->members[i]->tuple));
            AdvisedClass* read = read_class(*method, type, form);
            if (read != nullptr) found = lappend(found, read);
        }
        ReleaseSysCacheList(classes);
    }
    return found;
}

}  // namespace

List* find_advised_classes(Oid type, const char* operator_name)
{
    List* all = find_classes(type);
    List* found = NIL;
    ListCell* cell;
    foreach (cell, all) {
        auto* candidate = static_cast<AdvisedClass*>(lfirst(cell));
        const bool wanted =
            operator_name == nullptr ? candidate->is_default : strcmp(candidate->operator_name, operator_name) == 0;
        if (wanted) found = lappend(found, candidate);
    }
    return found == NIL && operator_name == nullptr ? all : found;
}

const char* list_advised_operators(Oid type)
{
    List* listed = NIL;
    StringInfoData text;
    initStringInfo(&text);
    ListCell* cell;
    foreach (cell, find_classes(type)) {
        String* name = makeString(pstrdup(static_cast<AdvisedClass*>(lfirst(cell))->operator_name));
        if (list_member(listed, name)) continue;
        appendStringInfo(&text, "%s%s", listed == NIL ? "" : ", ", strVal(name));
        listed = lappend(listed, name);
    }
    return listed == NIL ? nullptr : text.data;
}

}  // namespace pgwarp
