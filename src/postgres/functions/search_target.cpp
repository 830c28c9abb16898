#include "postgres/functions/search_target.h"

#include "postgres/am/element_type.h"
#include "postgres/am/methods.h"
#include "postgres/client/index_state.h"
#include "postgres/types/any_vector.h"

extern "C" {
#include "access/sysattr.h"
#include "access/xlog.h"
#include "catalog/objectaddress.h"
#include "nodes/bitmapset.h"
#include "optimizer/optimizer.h"
#include "storage/predicate.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
}

namespace pgwarp
{

namespace
{

// Returns the columns that the index reads: keys, expressions and predicate, as offsets from the first system column.
// PostgreSQL simplifies expressions when it reads them, which may run functions: so this code runs as the table's
// owner.
Bitmapset* columns_of_index(Relation heap, Relation index)
{
    Bitmapset* columns = nullptr;
    const OwnerScope scope = enter_owner(heap->rd_rel->relowner);
    for (int i = 0; i < index->rd_index->indnatts; ++i) {
        const AttrNumber number = index->rd_index->indkey.values[i];
        if (number != 0) columns = bms_add_member(columns, number - FirstLowInvalidHeapAttributeNumber);
    }
    pull_varattnos(reinterpret_cast<Node*>(RelationGetIndexExpressions(index)), 1, &columns);
    pull_varattnos(reinterpret_cast<Node*>(RelationGetIndexPredicate(index)), 1, &columns);
    leave_owner(scope);
    return columns;
}

}  // namespace

Oid table_of_index(Oid index)
{
    const Oid table = IndexGetRelation(index, true);
    if (OidIsValid(table)) return table;
    const char* name = get_rel_name(index);
    if (name == nullptr) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation with OID %u does not exist", index)));
    }
    refuse_other_relation(name);
}

void check_usable_index(Relation index)
{
    const char* name = RelationGetRelationName(index);
    const Form_pg_index form = index->rd_index;
    if (RELATION_IS_OTHER_TEMP(index)) {
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot access temporary indexes of other sessions")));
    }
    if (RecoveryInProgress() && index->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT) {
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot access temporary or unlogged relations during recovery")));
    }
    if (!form->indislive || !form->indisready || !form->indisvalid) {
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("index \"%s\" is not valid", name),
                        errhint("Its build has failed or goes on; REINDEX or drop it.")));
    }
    // The build met broken HOT chains: older snapshots must not use the index (see src/backend/access/heap/README.HOT).
    const bool broken_chains = form->indcheckxmin;
    if (broken_chains &&
        !TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), TransactionXmin)) {
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("index \"%s\" is too new for this transaction", name),
                        errhint("Repeat the statement in a new transaction.")));
    }
}

void check_may_read(Relation heap, const Bitmapset* columns)
{
    const Oid table = RelationGetRelid(heap);
    const Oid user = GetUserId();
    if (pg_class_aclcheck(table, user, ACL_SELECT) != ACLCHECK_OK) {
        bool allowed = !bms_is_empty(columns);
        for (int i = -1; (i = bms_next_member(columns, i)) >= 0;) {
            const auto number = static_cast<AttrNumber>(i + FirstLowInvalidHeapAttributeNumber);
            const AclResult result = number == InvalidAttrNumber
                                         ? pg_attribute_aclcheck_all(table, user, ACL_SELECT, ACLMASK_ALL)
                                         : pg_attribute_aclcheck(table, number, user, ACL_SELECT);
            if (result != ACLCHECK_OK) allowed = false;
        }
        if (!allowed)
            aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(heap->rd_rel->relkind), RelationGetRelationName(heap));
    }
    if (check_enable_rls(table, InvalidOid, false) == RLS_ENABLED) {
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("row-level security of table \"%s\" applies to this user", RelationGetRelationName(heap)),
                 errdetail("The function reads the table past its policies."),
                 errhint("Use a query with ORDER BY ... LIMIT, which obeys them.")));
    }
}

void check_may_read_index(Oid index_oid)
{
    Relation heap = table_open(table_of_index(index_oid), AccessShareLock);
    Relation index = relation_open(index_oid, AccessShareLock);
    check_may_read(heap, columns_of_index(heap, index));
    relation_close(index, NoLock);
    table_close(heap, NoLock);
}

enum class Takes { vectors, vectors_and_signed_sets, any };

// Raises an error for an index of lists that a function does not serve.
static void refuse_lists(Relation index, Takes takes)
{
    const bool measures = takes == Takes::vectors_and_signed_sets;
    const char* serves = measures ? "vectors, and of sets by signatures" : "vectors";
    const char* hint = "Use a query with ORDER BY ... LIMIT, or a lateral join of such a query.";
    if (measures) hint = "Its answers are exact.";
    if (measures && index_element_type(index) == ElementType::text)
        hint = "Its answers are exact, but for searches without proof, whose recall is not measured.";
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("index \"%s\" is of %s: the function serves indexes of %s", RelationGetRelationName(index),
                           format_type_be(vector_type(index)), serves),
                    errhint("%s", hint)));
}

static bool takes_index(Takes takes, Relation index)
{
    const ElementType element = index_element_type(index);
    return !is_list(element) || takes == Takes::any ||
           (takes == Takes::vectors_and_signed_sets && element == ElementType::minhash_set);
}

static SearchTarget* open_target(Oid index_oid, uint64 expected_rows, Takes takes)
{
    auto* target = static_cast<SearchTarget*>(palloc0(sizeof(SearchTarget)));
    target->heap = table_open(table_of_index(index_oid), AccessShareLock);
    target->index = relation_open(index_oid, AccessShareLock);
    access_method_of(target->index);
    check_may_read(target->heap, columns_of_index(target->heap, target->index));
    check_usable_index(target->index);
    if (!takes_index(takes, target->index)) refuse_lists(target->index, takes);
    Snapshot active = GetActiveSnapshot();
    if (!IsMVCCSnapshot(active)) elog(ERROR, "non-MVCC snapshots are not supported");
    target->snapshot = RegisterSnapshot(active);
    PredicateLockRelation(target->index, target->snapshot);
    const IndexShape shape = read_metapage(target->index).shape;
    target->metric = static_cast<Metric>(shape.metric);
    target->dimensions = shape.dimensions;
    target->reader = open_heap_reader(target->heap, target->index, target->snapshot);
    target->visible = make_visible_rows(target->reader, expected_rows);
    return target;
}

SearchTarget* open_search_target(Oid index, uint64 expected_rows)
{
    return open_target(index, expected_rows, Takes::vectors);
}

SearchTarget* open_approximate_target(Oid index, uint64 expected_rows)
{
    return open_target(index, expected_rows, Takes::vectors_and_signed_sets);
}

SearchTarget* open_target_of_any(Oid index, uint64 expected_rows)
{
    return open_target(index, expected_rows, Takes::any);
}

void check_query_dimensions(const SearchTarget* target, int dimensions)
{
    const int own = index_dimensions(target->index);
    if (dimensions != own) refuse_different_dims(target->reader->key.element, own, dimensions);
}

void close_search_target(SearchTarget* target)
{
    close_heap_reader(target->reader);
    UnregisterSnapshot(target->snapshot);
    // As in the executor, locks are kept to the end of the transaction: until then no command rewrites the table, whose
    // tids were returned.
    relation_close(target->index, NoLock);
    table_close(target->heap, NoLock);
}

}  // namespace pgwarp
