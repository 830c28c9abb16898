// Distances of PostgreSQL's bit strings.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/any_vector.h"

#include "numeric/bits.h"

extern "C" {
#include "utils/varbit.h"
}

namespace pgwarp
{

namespace
{

Datum bit_distance_of_arguments(FunctionCallInfo fcinfo, Metric metric)
{
    const VarBit* a = PG_GETARG_VARBIT_P(0);
    const VarBit* b = PG_GETARG_VARBIT_P(1);
    if (VARBITLEN(a) != VARBITLEN(b)) refuse_different_dims(ElementType::bit, VARBITLEN(a), VARBITLEN(b));
    PG_RETURN_FLOAT8(bit_distance(metric, VARBITS(a), VARBITS(b), VARBITBYTES(a)));
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_hamming_distance)
{
    return pgwarp::bit_distance_of_arguments(fcinfo, pgwarp::Metric::hamming);
}

PGWARP_FUNCTION(pgwarp_jaccard_distance)
{
    return pgwarp::bit_distance_of_arguments(fcinfo, pgwarp::Metric::jaccard);
}
