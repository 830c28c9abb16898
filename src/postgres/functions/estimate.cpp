// Estimated similarities of the rows that are most similar to a query, by an index whose rows have signatures.
#include "postgres/am/index_options.h"
#include "postgres/client/batch_search.h"
#include "postgres/fmgr_cpp.h"
#include "postgres/functions/arguments.h"
#include "postgres/functions/query_batch.h"
#include "postgres/scan/search_start.h"
#include "postgres/types/vector.h"
#include "protocol/similarity.h"

extern "C" {
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"
}

namespace pgwarp
{

namespace
{

// A row has no smaller estimate than this: there are fewer functions.
constexpr double least_estimate = 1e-6;

struct Estimates {
    SearchTarget* target;
    RowView query;  // one, in the form that the engine expects
    uint32 k;
    double delta;
    Tuplestorestate* store;
    TupleDesc columns;
};

[[noreturn]] void refuse_query(Relation index, Oid type)
{
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("index \"%s\" is of %s: the query is of %s", RelationGetRelationName(index),
                           format_type_be(vector_type(index)), format_type_be(type))));
    pg_unreachable();
}

// Raises an error unless rows of the index have signatures.
void check_signatures(const SearchTarget* target)
{
    Relation index = target->index;
    const MethodDescription& method = access_method_of(index);
    const ElementType element = index_element_type(index);
    if (array_name(method, ArrayRole::hashes) == nullptr) {
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("index \"%s\" estimates no similarities", RelationGetRelationName(index)),
                        errdetail("Indexes of %s have no hash functions.", method.name)));
    }
    if (is_list(element) && element != ElementType::minhash_set) {
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("index \"%s\" estimates no similarities", RelationGetRelationName(index)),
                        errhint("Indexes of vectors do, and those of sets by an operator class such as "
                                "int4_array_minhash_ops.")));
    }
}

double delta_of(Relation index)
{
    const int64 delta = index_stored_options(access_method_of(index), index).get(option_delta, 0);
    return delta > 0 ? static_cast<double>(delta) / 1e6 : usual_delta;
}

void put_estimate(const Estimates& estimates, Tid row, double similarity, double error)
{
    ItemPointerData tid;
    ItemPointerSet(&tid, row.block, row.offset);
    Datum values[3] = {PointerGetDatum(&tid), Float8GetDatum(similarity), Float8GetDatum(error)};
    bool nulls[3] = {};
    tuplestore_putvalues(estimates.store, estimates.columns, values, nulls);
}

// Put the rows of a reply that the snapshot sees, up to k. Returns their number.
uint32 put_rows(const Estimates& estimates, const BatchReply& reply, double error)
{
    uint32 put = 0;
    for (uint32 i = 0; i < reply.counts[0] && put < estimates.k; ++i) {
        Tid row;
        const double similarity = -reply.results[i].distance;
        if (!(similarity >= least_estimate)) break;  // rows inserted since, which have no signatures yet
        if (!find_visible_row(estimates.target->visible, reply.results[i].tid, &row)) continue;
        put_estimate(estimates, row, similarity, error);
        ++put;
    }
    return put;
}

// Search deeper while rows that the snapshot does not see take the places of others.
void estimate_rows(const Estimates& estimates)
{
    Relation index = estimates.target->index;
    for (uint32 wanted = estimates.k; wanted > 0; wanted = Min(wanted * 2, max_k)) {
        CHECK_FOR_INTERRUPTS();
        const IndexState state = read_index_state(index);
        if (index_is_empty(state)) return;
        SearchRequest request = {};
        prepare_normal_search(index, state, wanted, &request);
        request.k = wanted;
        request.settings.set(setting_estimate, 1);
        limit_request(&request);
        const EngineReply raw = engine_search(index, state, &request, estimates.query);
        const BatchReply reply = read_batch_reply(raw.payload, raw.payload_bytes, 1, request.k);
        tuplestore_clear(estimates.store);
        const double error = error_of_estimate(state.options, estimates.delta);
        const bool last = reply.counts[0] < wanted || wanted == max_k;
        const uint32 put = put_rows(estimates, reply, error);
        pfree(reply.copy);
        if (last || put == estimates.k) return;
    }
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_estimate_similarity)
{
    using namespace pgwarp;
    const Vector* vector = PG_GETARG_VECTOR(1);
    const uint32 k = checked_k(PG_GETARG_INT32(2));
    InitMaterializedSRF(fcinfo, 0);
    const auto* info = reinterpret_cast<const ReturnSetInfo*>(fcinfo->resultinfo);
    if (info->setDesc->natts != 3) elog(ERROR, "the function has another row type");
    SearchTarget* target = open_target_of_any(PG_GETARG_OID(0), k);
    check_signatures(target);
    if (is_list(index_element_type(target->index))) refuse_query(target->index, get_fn_expr_argtype(fcinfo->flinfo, 1));
    check_query_dimensions(target, vector->dim);
    QueryBatch* batch = make_query_batch(target, 1, false);
    add_query(batch, target, 0, vector->x);
    const RowView query = dense_rows(batch->sent, 1, target->dimensions);
    if (!batch->arbitrary[0])
        estimate_rows({target, query, k, delta_of(target->index), info->setResult, info->setDesc});
    close_search_target(target);
    return static_cast<Datum>(0);
}

PGWARP_FUNCTION(pgwarp_estimate_set_similarity)
{
    using namespace pgwarp;
    const uint32 k = checked_k(PG_GETARG_INT32(2));
    InitMaterializedSRF(fcinfo, 0);
    const auto* info = reinterpret_cast<const ReturnSetInfo*>(fcinfo->resultinfo);
    if (info->setDesc->natts != 3) elog(ERROR, "the function has another row type");
    SearchTarget* target = open_target_of_any(PG_GETARG_OID(0), k);
    check_signatures(target);
    const Oid type = get_fn_expr_argtype(fcinfo->flinfo, 1);
    if (getBaseType(type) != vector_type(target->index)) refuse_query(target->index, type);
    const RowView query = target->reader->key.list->read_query(PG_GETARG_DATUM(1));
    estimate_rows({target, query, k, delta_of(target->index), info->setResult, info->setDesc});
    close_search_target(target);
    return static_cast<Datum>(0);
}
