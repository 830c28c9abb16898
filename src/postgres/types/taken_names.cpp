// Refuses CREATE EXTENSION and ALTER EXTENSION UPDATE in a schema that already has types of these names, for example
// pgvector's, and in a database that has the other one of pgwarp's extensions.
#include "postgres/fmgr_cpp.h"

#include "methods/description.h"

extern "C" {
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

[[noreturn]] void refuse_schema(const char* type, Oid schema, const char* extension, bool updating)
{
    ereport(ERROR,
            (errcode(ERRCODE_DUPLICATE_OBJECT),
             errmsg("type \"%s\" already exists in schema \"%s\"", type, get_namespace_name(schema)),
             extension != nullptr ? errdetail("It belongs to extension \"%s\".", extension) : 0,
             updating ? errhint("Move pgwarp first: CREATE SCHEMA pgwarp; ALTER EXTENSION pgwarp SET SCHEMA pgwarp;")
             : extension != nullptr && strcmp(extension, "vector") == 0
                 ? errhint("Create pgwarp in another schema: CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA "
                           "pgwarp; then CREATE EXTENSION pgwarp_pgvector for indexes on pgvector's own columns.")
                 : errhint("Create pgwarp in another schema: CREATE SCHEMA pgwarp; CREATE EXTENSION pgwarp SCHEMA "
                           "pgwarp;")));
}

// Raises an error where the other one of pgwarp's extensions has the access methods: `vector`, which serves pgvector's
// SQL, has everything that `pgwarp` has.
void refuse_other_extension()
{
    for (const MethodDescription* method : method_descriptions()) {
        const Oid access_method = get_am_oid(method->name, true);
        const Oid owner =
            OidIsValid(access_method) ? getExtensionOfObject(AccessMethodRelationId, access_method) : InvalidOid;
        if (!OidIsValid(owner) || owner == CurrentExtensionObject) continue;
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                        errmsg("extension \"%s\" cannot be in one database with extension \"%s\"",
                               get_extension_name(CurrentExtensionObject), get_extension_name(owner)),
                        errdetail("Both are pgwarp, with the same access methods."),
                        errhint("Extension \"vector\" of pgwarp has all that extension \"pgwarp\" has.")));
    }
}

}  // namespace

}  // namespace pgwarp

// Raises an error if the schema where a script creates its objects has one of the types.
PGWARP_FUNCTION(pgwarp_refuse_taken_names)
{
    using namespace pgwarp;
    if (creating_extension) refuse_other_extension();
    const List* path = fetch_search_path(false);
    const Oid schema = path == NIL ? InvalidOid : linitial_oid(path);
    const char* const names[] = {"vector", "halfvec", "sparsevec", "attributes", "attribute_query", "bm25_query"};
    bool updating = false;
    for (const char* name : names) {
        const Oid type =
            GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name), ObjectIdGetDatum(schema));
        if (!OidIsValid(type)) continue;
        const Oid extension = getExtensionOfObject(TypeRelationId, type);
        if (creating_extension && extension == CurrentExtensionObject) {
            updating = true;
            continue;
        }
        refuse_schema(name, schema, OidIsValid(extension) ? get_extension_name(extension) : nullptr, updating);
    }
    PG_RETURN_VOID();
}
