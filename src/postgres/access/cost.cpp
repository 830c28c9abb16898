// amcostestimate: what a search costs, in the planner's units. Looks at the relcache only, never at pages of the index.
#include <cmath>

#include "numeric/bits.h"
#include "postgres/access/callbacks.h"
#include "postgres/access/index_options.h"
#include "postgres/engine/connection.h"
#include "postgres/types/any_vector.h"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/float.h"
}

namespace pgwarp
{

namespace
{

// A round trip to the engine: about twenty cached page reads.
constexpr double round_trip_cost = 20.0;
// The engine compares a row many times faster than an operator call in a plan does.
constexpr double engine_speed_up = 4.0;

// Keep a path from being chosen.
void forbid(IndexPath* path, Cost* startup_cost, Cost* total_cost)
{
    *startup_cost = get_float8_infinity();
    *total_cost = get_float8_infinity();
#if PG_VERSION_NUM >= 180000
    path->path.disabled_nodes = 2;
#else
    (void)path;
#endif
}

// The cost of one search, before its first row comes out.
double search_cost(const AccessMethod& method, const IndexPath* path)
{
    Relation index = index_open(path->indexinfo->indexoid, NoLock);
    const SearchCostInput input = {Max(1.0, path->indexinfo->tuples), index_stored_options(method, index), false};
    const double dimensions = index_dimensions(index);
    const double most = index_element_type(index) == ElementType::bit ? 256.0 * bits_of_word : 256.0;
    index_close(index, NoLock);
    // Wide vectors cost the engine more, but a sequential scan too, which PostgreSQL's model doesn't know: stay in its
    // scale.
    const double width = Min(1.0, Max(0.1, dimensions / most));
    return round_trip_cost + method.compared_rows(input) * cpu_operator_cost / engine_speed_up * width;
}

}  // namespace

void estimate_method_cost(const AccessMethod& method, PlannerInfo* root, IndexPath* path, double loop_count,
                          Cost* startup_cost, Cost* total_cost, Selectivity* selectivity, double* correlation,
                          double* pages)
{
    const double rows = Max(1.0, path->indexinfo->tuples);
    // Every row comes out in the end; a partial index has fewer than the table.
    *selectivity = path->indexinfo->rel->tuples > 0 ? Min(1.0, rows / path->indexinfo->rel->tuples) : 1.0;
    *correlation = 0;
    *pages = path->indexinfo->pages;
    if (path->indexorderbys == NIL || !engine_available()) {
        forbid(path, startup_cost, total_cost);
        return;
    }
    *startup_cost = search_cost(method, path);
    // Going through all rows in order must cost no less than sorting them: continuations search again and again.
    const double row_cost = cpu_index_tuple_cost + 3.0 * cpu_operator_cost * std::log2(rows + 1.0);
    *total_cost = *startup_cost + rows * row_cost;
}

}  // namespace pgwarp
