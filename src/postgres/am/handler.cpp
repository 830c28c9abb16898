// The handlers of the access methods: their properties and callbacks, and the support functions of operator classes.
#include "postgres/am/buildempty.h"
#include "postgres/am/callbacks.h"
#include "postgres/am/element_type.h"
#include "postgres/am/insert.h"
#include "postgres/am/methods.h"
#include "postgres/am/vacuum.h"
#include "postgres/fmgr_cpp.h"

extern "C" {
#include "commands/vacuum.h"
#include "nodes/makefuncs.h"
}

namespace pgwarp
{

namespace
{

// Sets the properties: ordered scans of one key column that filter by others, with included columns.
void set_capabilities(IndexAmRoutine* routine)
{
    routine->amstrategies = 0;
    routine->amsupport = last_support;
    routine->amcanorderbyop = true;
    routine->amcanmulticol = true;
    routine->amsearcharray = true;
    routine->amsearchnulls = true;
    routine->amoptionalkey = true;
    // Index-only scans are planned by index_only_path.cpp alone, so amcanreturn is null.
    routine->amcaninclude = true;
#if PG_VERSION_NUM >= 170000
    routine->amcanbuildparallel = true;
#endif
    routine->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL;
    routine->amkeytype = InvalidOid;
}

}  // namespace

static IndexAmRoutine* make_routine(const MethodCallbacks& callbacks)
{
    IndexAmRoutine* routine = makeNode(IndexAmRoutine);
    set_capabilities(routine);
    routine->ambuild = build_index;
    routine->ambuildempty = pgwarp_ambuildempty;
    routine->aminsert = pgwarp_aminsert;
    routine->ambulkdelete = pgwarp_ambulkdelete;
    routine->amvacuumcleanup = pgwarp_amvacuumcleanup;
    routine->amcostestimate = callbacks.estimate_cost;
    routine->amoptions = callbacks.parse_options;
    routine->ambuildphasename = build_phase_name;
    routine->amvalidate = validate_operator_class;
    routine->ambeginscan = begin_scan;
    routine->amrescan = rescan;
    routine->amgettuple = next_tuple;
    routine->amendscan = end_scan;
    return routine;
}

IndexAmRoutine* make_routine(Method id)
{
    return make_routine(callbacks_of(id));
}

// As pgvector's own access methods: one column, without others to filter by.
static IndexAmRoutine* make_alias_routine(MethodAlias number)
{
    IndexAmRoutine* routine = make_routine(callbacks_of(number));
    routine->amsupport = find_alias(routine->amoptions)->support_functions;
    routine->amcanmulticol = false;
    routine->amcaninclude = false;
    routine->amvalidate = validate_alias_class;
    routine->ambuildphasename = number == MethodAlias::hnsw ? hnsw_phase_name : ivfflat_phase_name;
    return routine;
}

}  // namespace pgwarp

#define PGWARP_HANDLER(name, number, on_device)                            \
    PGWARP_FUNCTION(pgwarp_##name##_handler)                               \
    {                                                                      \
        PGWARP_RETURN_ROUTINE(pgwarp::make_routine(pgwarp::Method::name)); \
    }
PGWARP_METHODS(PGWARP_HANDLER)
#undef PGWARP_HANDLER

// The handlers of the aliases, which vector.so calls.
PGWARP_FUNCTION(pgwarp_hnsw_handler)
{
    PGWARP_RETURN_ROUTINE(pgwarp::make_alias_routine(pgwarp::MethodAlias::hnsw));
}

PGWARP_FUNCTION(pgwarp_ivfflat_handler)
{
    PGWARP_RETURN_ROUTINE(pgwarp::make_alias_routine(pgwarp::MethodAlias::ivfflat));
}

// Support function 1 of the operator classes returns the metric.
PGWARP_FUNCTION(pgwarp_metric_l2)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::l2));
}

PGWARP_FUNCTION(pgwarp_metric_inner_product)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::inner_product));
}

PGWARP_FUNCTION(pgwarp_metric_cosine)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::cosine));
}

PGWARP_FUNCTION(pgwarp_metric_l1)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::l1));
}

PGWARP_FUNCTION(pgwarp_metric_hamming)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::hamming));
}

PGWARP_FUNCTION(pgwarp_metric_jaccard)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::jaccard));
}

PGWARP_FUNCTION(pgwarp_metric_edit)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::edit));
}

PGWARP_FUNCTION(pgwarp_metric_edit_transpositions)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::edit_transpositions));
}

PGWARP_FUNCTION(pgwarp_metric_edit_substring)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::edit_substring));
}

PGWARP_FUNCTION(pgwarp_metric_gram_jaccard)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::gram_jaccard));
}

PGWARP_FUNCTION(pgwarp_metric_overlap)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::overlap));
}

PGWARP_FUNCTION(pgwarp_metric_set_jaccard)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::set_jaccard));
}

PGWARP_FUNCTION(pgwarp_metric_bm25)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Metric::bm25));
}

// Support function 3 returns the arithmetic.
PGWARP_FUNCTION(pgwarp_arithmetic_float32)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::Arithmetic::float32));
}

// Support function 2 returns the element type.
PGWARP_FUNCTION(pgwarp_element_float32)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::float32));
}

PGWARP_FUNCTION(pgwarp_element_float16)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::float16));
}

PGWARP_FUNCTION(pgwarp_element_bit)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::bit));
}

PGWARP_FUNCTION(pgwarp_element_text)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::text));
}

PGWARP_FUNCTION(pgwarp_element_set)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::set));
}

PGWARP_FUNCTION(pgwarp_element_bag)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::bag));
}

PGWARP_FUNCTION(pgwarp_element_attribute_set)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::attribute_set));
}

PGWARP_FUNCTION(pgwarp_element_minhash_set)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::minhash_set));
}

PGWARP_FUNCTION(pgwarp_element_sparse)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::ElementType::sparse));
}
