#include "postgres/am/index_columns.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

bool orders_by(Relation index, int column)
{
    return OidIsValid(index_getprocid(index, static_cast<AttrNumber>(column + 1), metric_support));
}

const char* column_name(Relation index, int column)
{
    return NameStr(TupleDescAttr(RelationGetDescr(index), column)->attname);
}

bool is_ordering_class(const FormData_pg_opclass& candidate, Oid type)
{
    const Oid input = candidate.opcintype;
    return IsBinaryCoercible(type, input) &&
           OidIsValid(get_opfamily_proc(candidate.opcfamily, input, input, metric_support));
}

// The name of an operator class of the index's access method that would order by a value of this type; null where there
// is none.
char* find_ordering_class(Relation index, Oid type)
{
    char* name = nullptr;
    Relation catalog = table_open(OperatorClassRelationId, AccessShareLock);
    ScanKeyData of_method;
    ScanKeyInit(&of_method, Anum_pg_opclass_opcmethod, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(index->rd_rel->relam));
    SysScanDesc scan = systable_beginscan(catalog, OpclassAmNameNspIndexId, true, nullptr, 1, &of_method);
    while (HeapTuple tuple = name == nullptr ? systable_getnext(scan) : nullptr) {
        const auto* candidate = reinterpret_cast<Form_pg_opclass>(GETSTRUCT(tuple));
        if (is_ordering_class(*candidate, type)) name = pstrdup(NameStr(candidate->opcname));
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return name;
}

// Raises an error where a column could be ordered by, if only its operator class were named.
void refuse_unnamed_class(Relation index)
{
    for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); ++i) {
        const char* name = find_ordering_class(index, TupleDescAttr(RelationGetDescr(index), i)->atttypid);
        if (name == nullptr) continue;
        ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                        errmsg("index \"%s\" has no column that it could order by", RelationGetRelationName(index)),
                        errhint("Specify an operator class that orders by a distance for column \"%s\", such as %s.",
                                column_name(index, i), name)));
    }
}

}  // namespace

int vector_column(Relation index)
{
    const int keys = IndexRelationGetNumberOfKeyAttributes(index);
    for (int i = 0; i < keys; ++i) {
        if (orders_by(index, i)) return i;
    }
    return 0;
}

int vector_column(const IndexOptInfo* index)
{
    for (int i = 0; i < index->nkeycolumns && index->nkeycolumns > 1; ++i) {
        const Oid type = index->opcintype[i];
        if (OidIsValid(get_opfamily_proc(index->opfamily[i], type, type, metric_support))) return i;
    }
    return 0;
}

Oid vector_type(Relation index)
{
    return index->rd_opcintype[vector_column(index)];
}

int32 vector_modifier(Relation index)
{
    return TupleDescAttr(RelationGetDescr(index), vector_column(index))->atttypmod;
}

int index_dimensions(Relation index)
{
    return vector_modifier(index);
}

int filter_column_count(Relation index)
{
    return IndexRelationGetNumberOfKeyAttributes(index) - 1;
}

int filter_column(int vector, int number)
{
    return number < vector ? number : number + 1;
}

int filter_number(int vector, int column)
{
    return column < vector ? column : column - 1;
}

[[noreturn]] static void refuse_without_order(Relation index)
{
    refuse_unnamed_class(index);
    const char* hint = "An index orders by one column, such as a vector, and filters by others.";
    if (filter_column_count(index) == 0) {
        const Oid type = TupleDescAttr(RelationGetDescr(index), 0)->atttypid;
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("data type %s has no operator class for access method \"%s\" that orders by a distance",
                               format_type_be(type), get_am_name(index->rd_rel->relam)),
                        errhint("%s", hint)));
    }
    ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                    errmsg("index \"%s\" has no column that it could order by", RelationGetRelationName(index)),
                    errhint("%s", hint)));
}

void check_index_columns(Relation index)
{
    const char* name = RelationGetRelationName(index);
    const int vector = vector_column(index);
    if (!orders_by(index, vector)) refuse_without_order(index);
    for (int i = vector + 1; i < IndexRelationGetNumberOfKeyAttributes(index); ++i) {
        if (!orders_by(index, i)) continue;
        ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                        errmsg("index \"%s\" cannot order by two columns, \"%s\" and \"%s\"", name,
                               column_name(index, vector), column_name(index, i)),
                        errhint("Create an index for each; a column to filter by may need the operator class "
                                "filter_ops.")));
    }
    if (filter_column_count(index) > most_filter_columns) {
        ereport(ERROR,
                (errcode(ERRCODE_TOO_MANY_COLUMNS),
                 errmsg("index \"%s\" cannot have more than %d columns to filter by", name, most_filter_columns)));
    }
}

}  // namespace pgwarp
