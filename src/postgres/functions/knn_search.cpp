// knn_search(index, queries, k): the k nearest rows of each of many queries, searched for in batches.
#include "postgres/fmgr_cpp.h"
#include "postgres/functions/arguments.h"
#include "postgres/functions/batch_pipeline.h"
#include "postgres/functions/vector_source.h"

extern "C" {
#include "funcapi.h"
#include "utils/tuplestore.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 unknown_queries = 10000;  // assumed number for a query's text; for sizing only

// The destination of the result's rows.
struct ResultRows {
    Tuplestorestate* store;
    TupleDesc columns;
};

ResultRows begin_rows(FunctionCallInfo fcinfo)
{
    InitMaterializedSRF(fcinfo, 0);
    const auto* info = reinterpret_cast<const ReturnSetInfo*>(fcinfo->resultinfo);
    if (info->setDesc->natts != 3) elog(ERROR, "knn_search() has another row type");
    return {info->setResult, info->setDesc};
}

void put_answers(const QueryBatch* batch, ResultRows rows)
{
    const bool nulls[3] = {};
    for (uint32 i = 0; i < batch->count; ++i) {
        const Neighbour* found = batch->found + static_cast<size_t>(i) * batch->k;
        for (uint32 j = 0; j < batch->found_count[i]; ++j) {
            ItemPointerData tid;
            ItemPointerSet(&tid, found[j].tid.block, found[j].tid.offset);
            Datum values[3] = {Int32GetDatum(static_cast<int32>(batch->numbers[i])), PointerGetDatum(&tid),
                               Float8GetDatum(found[j].distance)};
            tuplestore_putvalues(rows.store, rows.columns, values, const_cast<bool*>(nulls));
        }
    }
}

// The source of a pipeline's queries.
struct SearchInput {
    const SearchTarget* target;
    VectorSource* source;
    bool ended;
};

void fill_batch(QueryBatch* batch, void* state)
{
    auto* input = static_cast<SearchInput*>(state);
    SourceVector vector = {};
    while (!input->ended && batch->count < batch->capacity) {
        input->ended = !next_vector(input->source, &vector);
        if (input->ended || vector.values == nullptr) continue;
        check_query_dimensions(input->target, vector.dim);
        add_query(batch, input->target, input->source->number, vector.values);
    }
}

void search_all(SearchTarget* target, VectorSource* source, uint32 k, ResultRows rows)
{
    SearchInput input = {target, source, false};
    source->wanted = target->reader->key.element;
    if ((source->element == ElementType::bit) != (source->wanted == ElementType::bit)) {
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("queries of type %s cannot be searched for in index \"%s\"",
                               element_type_name(source->element), RelationGetRelationName(target->index)),
                        errdetail("Its rows are of type %s.", element_type_name(source->wanted))));
    }
    BatchPipeline* pipeline = make_pipeline(target, k, false, fill_batch, &input);
    while (const QueryBatch* batch = next_answers(pipeline)) put_answers(batch, rows);
}

uint64 expected_lookups(uint64 queries, uint32 k)
{
    return queries * (uint64{k} + k / 4);
}

}  // namespace

}  // namespace pgwarp

// Outside the namespace, because PostgreSQL's array macros need its own type ArrayType.
static ::ArrayType* array_argument(FunctionCallInfo fcinfo, int argument)
{
    return PG_GETARG_ARRAYTYPE_P(argument);
}

PGWARP_FUNCTION(pgwarp_knn_search_array)
{
    using namespace pgwarp;
    const ResultRows rows = begin_rows(fcinfo);
    const uint32 k = checked_k(PG_GETARG_INT32(2));
    VectorSource source = open_array_source(array_argument(fcinfo, 1));
    SearchTarget* target = open_search_target(PG_GETARG_OID(0), expected_lookups(source.count, k));
    search_all(target, &source, k, rows);
    close_search_target(target);
    close_source(&source);
    return static_cast<Datum>(0);
}

PGWARP_FUNCTION(pgwarp_knn_search_query)
{
    using namespace pgwarp;
    const ResultRows rows = begin_rows(fcinfo);
    const uint32 k = checked_k(PG_GETARG_INT32(2));
    const char* query = text_to_cstring(PG_GETARG_TEXT_PP(1));
    SearchTarget* target = open_search_target(PG_GETARG_OID(0), expected_lookups(unknown_queries, k));
    SPI_connect();
    VectorSource source = open_text_source(query, vector_type(target->index));
    search_all(target, &source, k, rows);
    close_source(&source);
    SPI_finish();
    close_search_target(target);
    return static_cast<Datum>(0);
}
