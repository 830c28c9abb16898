// Checks changed options of an index against its column, and the column of an index that ALTER TABLE keeps.
#include "postgres/am/option_changes.h"

#include "postgres/am/element_type.h"
#include "postgres/am/index_columns.h"
#include "postgres/am/index_options.h"

extern "C" {
#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

object_access_hook_type previous_hook = nullptr;

// Options of a relation in its catalog row, copied; null: none.
text* options_in(HeapTuple row, TupleDesc columns)
{
    bool is_null = false;
    const Datum options = heap_getattr(row, Anum_pg_class_reloptions, columns, &is_null);
    return is_null ? nullptr : reinterpret_cast<text*>(PG_DETOAST_DATUM_COPY(options));
}

// The options in the row that this command wrote, which no other snapshot sees yet.
text* new_options(Oid relation)
{
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
    Relation catalog = table_open(RelationRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, ClassOidIndexId, true, SnapshotSelf, 1, &key);
    HeapTuple row = systable_getnext(scan);
    text* options = HeapTupleIsValid(row) ? options_in(row, RelationGetDescr(catalog)) : nullptr;
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return options;
}

bool are_equal(const text* a, const text* b)
{
    if (a == nullptr || b == nullptr) return a == b;
    return VARSIZE_ANY(a) == VARSIZE_ANY(b) && memcmp(a, b, VARSIZE_ANY(a)) == 0;
}

// The index is locked by the command that changes it.
void check_new_options(Oid relation, const text* options)
{
    Relation index = index_open(relation, NoLock);
    if (find_access_method(index->rd_indam->amoptions) != nullptr) check_index_options(index, PointerGetDatum(options));
    index_close(index, NoLock);
}

// Other changes of an index than that of its options go on with options that an earlier version has let pass.
void check_change(Oid relation)
{
    HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(row)) return;
    bool is_null = false;
    const Datum value = SysCacheGetAttr(RELOID, row, Anum_pg_class_reloptions, &is_null);
    const bool is_index = reinterpret_cast<Form_pg_class>(GETSTRUCT(row))->relkind == RELKIND_INDEX;
    const text* old = is_index && !is_null ? reinterpret_cast<text*>(PG_DETOAST_DATUM_COPY(value)) : nullptr;
    ReleaseSysCache(row);
    if (!is_index) return;
    const text* options = new_options(relation);
    if (options != nullptr && !are_equal(old, options)) check_new_options(relation, options);
}

// Whether a relation that is being created is an index of this library. It is in the relation cache, and no snapshot
// sees its catalog rows yet.
bool is_own_index(Oid relation)
{
    Relation created = RelationIdGetRelation(relation);
    if (!RelationIsValid(created)) return false;
    const bool is_index = created->rd_rel->relkind == RELKIND_INDEX;
    const Oid access_method = created->rd_rel->relam;
    RelationClose(created);
    if (!is_index) return false;
    const IndexAmRoutine* routine = GetIndexAmRoutineByAmId(access_method, true);
    return routine != nullptr && find_access_method(routine->amoptions) != nullptr;
}

// An index that ALTER TABLE keeps, because the new type of its column stores values as the old one did, is made without
// a build. So its columns are checked here: one without dimensions could be neither searched nor built again.
void check_creation(Oid relation)
{
    if (!is_own_index(relation)) return;
    // index_create() does the same next.
    CommandCounterIncrement();
    Relation index = index_open(relation, NoLock);
    check_index_columns(index);
    if (has_dimensions(index_element_type(index))) index_shape(index);
    index_close(index, NoLock);
}

void check_access(ObjectAccessType access, Oid catalog, Oid object, int part, void* argument)
{
    if (previous_hook != nullptr) previous_hook(access, catalog, object, part, argument);
    if (catalog != RelationRelationId || part != 0) return;
    if (access == OAT_POST_CREATE) check_creation(object);
    if (access == OAT_POST_ALTER) check_change(object);
}

}  // namespace

void init_option_changes()
{
    previous_hook = object_access_hook;
    object_access_hook = check_access;
}

}  // namespace pgwarp
