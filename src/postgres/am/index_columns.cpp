#include "postgres/am/index_columns.h"

extern "C" {
#include "commands/defrem.h"
#include "utils/builtins.h"
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
