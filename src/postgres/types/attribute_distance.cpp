// The match count of attributes, and its negative number as a distance.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/attributes.h"

namespace pgwarp
{

namespace
{

uint32 match_count(FunctionCallInfo fcinfo)
{
    const PartsValue* attributes = read_parts(PG_GETARG_DATUM(0));
    const PartsValue* query = read_parts(PG_GETARG_DATUM(1));
    const uint32 count = count_matches(query->parts(), attributes->parts());
    free_parts(attributes, PG_GETARG_DATUM(0));
    free_parts(query, PG_GETARG_DATUM(1));
    return count;
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_match_count)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::match_count(fcinfo)));
}

PGWARP_FUNCTION(pgwarp_attributes_overlap_distance)
{
    PG_RETURN_FLOAT8(pgwarp::overlap_distance(pgwarp::match_count(fcinfo)));
}
