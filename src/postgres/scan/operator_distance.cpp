// Calls the operators of other extensions.
#include "postgres/scan/operator_distance.h"

#include "postgres/storage/metapage.h"
#include "postgres/types/sparse_row.h"

extern "C" {
#include "access/stratnum.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

constexpr StrategyNumber ordering_strategy = 1;

// The function of the operator that orders the index.
Oid ordering_function(Relation index)
{
    const int column = vector_column(index);
    const Oid type = index->rd_opcintype[column];
    const Oid found = get_opfamily_member(index->rd_opfamily[column], type, type, ordering_strategy);
    if (!OidIsValid(found)) {
        elog(ERROR, "the operator class of index \"%s\" has no operator", RelationGetRelationName(index));
    }
    return get_opcode(found);
}

}  // namespace

OperatorDistance* open_operator_distance(Relation index, const KeyType& key)
{
    if (key.arithmetic == Arithmetic::canonical) return nullptr;
    auto* made = static_cast<OperatorDistance*>(palloc0(sizeof(OperatorDistance)));
    fmgr_info(ordering_function(index), &made->function);
    made->collation = index->rd_indcollation[vector_column(index)];
    return made;
}

std::size_t summed_terms(Relation index, Metric metric, const RowView& query)
{
    if (query.layout() == RowLayout::dense) return query.width;
    return sparse_terms(metric, query.word_count(), static_cast<Size>(index_dimensions(index)));
}

void set_operator_query(OperatorDistance* distance, Relation index, Metric metric, const RowView& row, Datum query)
{
    distance->query = PointerGetDatum(PG_DETOAST_DATUM_COPY(query));
    // A range that was read once holds every row of the scan's snapshot.
    if (bounds_need_norms(metric) && !distance->has_norms) {
        distance->norms = read_metapage(index).norms;
        distance->has_norms = true;
    }
    const bool dense = row.layout() == RowLayout::dense;
    const double norm = dense ? canonical_norm(row.values, row.width) : sparse_norm(view_sparse_row(row));
    distance->bounds = Float32Distance(metric, summed_terms(index, metric, row), norm, distance->norms);
}

bool fetch_operator_distance(HeapReader* reader, Tid tid, OperatorDistance* distance, double* value)
{
    Datum key;
    if (!fetch_row_key(reader, tid, &key)) return false;
    MemoryContext outer = MemoryContextSwitchTo(reader->row_context);
    *value = DatumGetFloat8(FunctionCall2Coll(&distance->function, distance->collation, key, distance->query));
    MemoryContextSwitchTo(outer);
    return true;
}

}  // namespace pgwarp
