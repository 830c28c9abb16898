// Distances of sets: arrays of integers and of strings, and tsvector.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/set_value.h"

namespace pgwarp
{

namespace
{

template <SetKind kind>
Datum distance_of_sets(FunctionCallInfo fcinfo, Metric metric)
{
    PG_RETURN_FLOAT8(SetsOf<kind>::distance(metric, PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

}  // namespace

}  // namespace pgwarp

using pgwarp::Metric;
using pgwarp::SetKind;

PGWARP_FUNCTION(pgwarp_array_overlap_distance)
{
    return pgwarp::distance_of_sets<SetKind::array>(fcinfo, Metric::overlap);
}

PGWARP_FUNCTION(pgwarp_array_jaccard_distance)
{
    return pgwarp::distance_of_sets<SetKind::array>(fcinfo, Metric::set_jaccard);
}

PGWARP_FUNCTION(pgwarp_tsvector_overlap_distance)
{
    return pgwarp::distance_of_sets<SetKind::lexemes>(fcinfo, Metric::overlap);
}

PGWARP_FUNCTION(pgwarp_tsvector_jaccard_distance)
{
    return pgwarp::distance_of_sets<SetKind::lexemes>(fcinfo, Metric::set_jaccard);
}
