// What PostgreSQL is told about the access methods.
#include "postgres/access/buildempty.h"
#include "postgres/access/callbacks.h"
#include "postgres/access/insert.h"
#include "postgres/access/vacuum.h"

extern "C" {
#include "commands/vacuum.h"
#include "nodes/makefuncs.h"

PG_FUNCTION_INFO_V1(pgwarp_exact_handler);
PG_FUNCTION_INFO_V1(pgwarp_ivfadc_handler);
PG_FUNCTION_INFO_V1(pgwarp_graph_handler);
PG_FUNCTION_INFO_V1(pgwarp_metric_l2);
PG_FUNCTION_INFO_V1(pgwarp_metric_inner_product);
PG_FUNCTION_INFO_V1(pgwarp_metric_cosine);
PG_FUNCTION_INFO_V1(pgwarp_metric_l1);
PG_FUNCTION_INFO_V1(pgwarp_metric_hamming);
PG_FUNCTION_INFO_V1(pgwarp_metric_jaccard);
}

namespace pgwarp
{

namespace
{

// Say what the methods can do: ordered scans of one column, which may return others that are included.
void set_capabilities(IndexAmRoutine* routine)
{
    routine->amstrategies = 0;
    routine->amsupport = 1;
    routine->amcanorderbyop = true;
    routine->amoptionalkey = true;
    // Index-only scans are planned by index_only_path.cpp alone, so amcanreturn is null.
    routine->amcaninclude = true;
#if PG_VERSION_NUM >= 170000
    routine->amcanbuildparallel = true;
#endif
    routine->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL;
    routine->amkeytype = InvalidOid;
}

// Make the routine of a method.
IndexAmRoutine* make_routine(Method id)
{
    const AccessMethod& method = access_method(id);
    IndexAmRoutine* routine = makeNode(IndexAmRoutine);
    set_capabilities(routine);
    routine->ambuild = build_index;
    routine->ambuildempty = pgwarp_ambuildempty;
    routine->aminsert = pgwarp_aminsert;
    routine->ambulkdelete = pgwarp_ambulkdelete;
    routine->amvacuumcleanup = pgwarp_amvacuumcleanup;
    routine->amcostestimate = method.estimate_cost;
    routine->amoptions = method.parse_options;
    routine->ambuildphasename = build_phase_name;
    routine->amvalidate = validate_operator_class;
    routine->ambeginscan = begin_scan;
    routine->amrescan = rescan;
    routine->amgettuple = next_tuple;
    routine->amendscan = end_scan;
    return routine;
}

}  // namespace

}  // namespace pgwarp

Datum pgwarp_exact_handler(PG_FUNCTION_ARGS)
{
    PG_RETURN_POINTER(pgwarp::make_routine(pgwarp::Method::exact));
}

Datum pgwarp_ivfadc_handler(PG_FUNCTION_ARGS)
{
    PG_RETURN_POINTER(pgwarp::make_routine(pgwarp::Method::ivfadc));
}

Datum pgwarp_graph_handler(PG_FUNCTION_ARGS)
{
    PG_RETURN_POINTER(pgwarp::make_routine(pgwarp::Method::graph));
}

// The support functions of the operator classes: which metric one stands for.
Datum pgwarp_metric_l2(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::l2));
}

Datum pgwarp_metric_inner_product(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::inner_product));
}

Datum pgwarp_metric_cosine(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::cosine));
}

Datum pgwarp_metric_l1(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::l1));
}

Datum pgwarp_metric_hamming(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::hamming));
}

Datum pgwarp_metric_jaccard(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::jaccard));
}
