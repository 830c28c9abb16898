// SQL functions of the type bm25_query: input, scores of documents, and their negative as a distance.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/attributes_io.h"
#include "postgres/types/bag_value.h"
#include "postgres/types/bm25_query.h"

namespace pgwarp
{

namespace
{

double score_of_arguments(FunctionCallInfo fcinfo)
{
    const RowView document = read_bag_row(PG_GETARG_DATUM(0));
    const PartsValue* query = read_parts(PG_GETARG_DATUM(1));
    const double score = score_of_bag(query->parts(), document.list(0));
    free_parts(query, PG_GETARG_DATUM(1));
    return score;
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_bm25_query_in)
{
    PG_RETURN_POINTER(pgwarp::parse_bm25_query(PG_GETARG_CSTRING(0)));
}

PGWARP_FUNCTION(pgwarp_bm25_query_recv)
{
    auto* buffer = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    PG_RETURN_POINTER(pgwarp::parse_bm25_query(pgwarp::receive_parts_text(buffer, "bm25_query")));
}

PGWARP_FUNCTION(pgwarp_bm25_score)
{
    PG_RETURN_FLOAT8(pgwarp::score_of_arguments(fcinfo));
}

PGWARP_FUNCTION(pgwarp_bm25_distance)
{
    PG_RETURN_FLOAT8(pgwarp::distance_of_score(pgwarp::score_of_arguments(fcinfo)));
}
