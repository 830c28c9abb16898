// Checks the ownership of an index.
#include "postgres/am/owned_index.h"

#include "postgres/am/methods.h"

extern "C" {
#include "catalog/pg_class.h"
#include "utils/acl.h"
}

namespace pgwarp
{

void check_is_built(Relation index)
{
    if (index->rd_index->indisready) return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
                    errhint("Its build has failed or goes on; REINDEX or drop it.")));
}

Relation open_owned_index(Oid oid, LOCKMODE lock)
{
    Relation index = relation_open(oid, lock);
    access_method_of(index);
#if PG_VERSION_NUM >= 160000
    const bool owner = object_ownercheck(RelationRelationId, oid, GetUserId());
#else
    const bool owner = pg_class_ownercheck(oid, GetUserId());
#endif
    if (!owner) aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, RelationGetRelationName(index));
    if (RELATION_IS_OTHER_TEMP(index)) {
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot access temporary indexes of other sessions")));
    }
    check_is_built(index);
    return index;
}

}  // namespace pgwarp
