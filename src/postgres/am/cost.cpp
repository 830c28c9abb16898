// amcostestimate: what a search costs, in the planner's units. Looks at the relcache only, never at pages of the index.
//
// Of a path's run cost PostgreSQL counts the share that the LIMIT takes of the path's rows. But the cost of a scan in
// order of distance is not the same for each row: the search comes before the first row, and the pages of a small table
// are soon in the cache. Therefore the estimate chooses a run cost of which this query's LIMIT takes the right share.
#include "postgres/am/cost.h"

#include "numeric/bits.h"
#include "postgres/am/callbacks.h"
#include "postgres/am/element_type.h"
#include "postgres/am/index_options.h"
#include "postgres/am/method_settings.h"
#include "postgres/client/connection.h"
#include "postgres/types/any_vector.h"
#include "protocol/calibration.h"

extern "C" {
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/spccache.h"
}

namespace pgwarp
{

namespace
{

// A round trip to the engine: about twenty cached page reads.
constexpr double round_trip_cost = 20.0;
// Operators' worth of comparing a dimension, on a CPU and on a GPU. A row takes as long as some dimensions more.
constexpr double dimension_operators = 0.08;
constexpr double gpu_speed_up = 400.0;
constexpr double row_dimensions = 4.0;
// The engine compares all rows in less time than a sequential scan only reads them. Wide vectors lie beside the table,
// where PostgreSQL doesn't count their pages: then that bound is the smaller.
constexpr double most_of_sequential_scan = 0.5;
// Operators' worth of handing on a row: it is put in order, looked up and checked for visibility.
constexpr double row_operators = 100.0;
// Rows beyond which an approximate method goes on exactly, and rows for which its usual effort is enough.
constexpr double exact_from = 1024.0;
constexpr double usual_rows = 64.0;
// A LIMIT whose number isn't known when the statement is planned.
constexpr double usual_limit = 100.0;
// More than any path costs that is only disabled. An infinite cost would make NaN of differences.
constexpr Cost forbidden_cost = 1e15;

// Keep a path from being chosen.
void forbid(IndexPath* path, Cost* startup_cost, Cost* total_cost)
{
    *startup_cost = forbidden_cost;
    *total_cost = forbidden_cost;
#if PG_VERSION_NUM >= 180000
    path->path.disabled_nodes = 2;
#else
    (void)path;
#endif
}

// How much of a path a query is expected to take.
struct Taken {
    double rows;   // of those that pass its filter
    double share;  // of the run cost, as PostgreSQL reckons
};

Taken taken_rows(const PlannerInfo* root, double passing)
{
    double rows = passing;
    if (root->limit_tuples > 0) {
        rows = root->limit_tuples;
    } else if (root->tuple_fraction >= 1) {
        rows = root->tuple_fraction;
    } else if (root->tuple_fraction > 0) {
        rows = passing * root->tuple_fraction;
        // PostgreSQL takes a tenth for a LIMIT whose number it doesn't know.
        if (root->parse->limitCount != nullptr) return {Min(rows, usual_limit), root->tuple_fraction};
    }
    rows = Min(rows, passing);
    return {rows, rows / passing};
}

// Whether a clause compares the distance that a path is ordered by with something: `distance < 5`.
bool compares_distance(const RestrictInfo* clause, const Node* distance)
{
    if (!IsA(clause->clause, OpExpr)) return false;
    return list_member(castNode(OpExpr, clause->clause)->args, distance);
}

// The share of the rows that pass, among those that come first. A bound of the distance drops none of these.
double pass_rate(PlannerInfo* root, const IndexPath* path)
{
    const IndexOptInfo* index = path->indexinfo;
    const auto* distance = static_cast<const Node*>(linitial(path->indexorderbys));
    List* bounds = NIL;
    ListCell* cell;
    foreach (cell, index->indrestrictinfo) {
        auto* clause = static_cast<RestrictInfo*>(lfirst(cell));
        if (compares_distance(clause, distance)) bounds = lappend(bounds, clause);
    }
    const double rows = Max(1.0, index->tuples);
    const double within = bounds == NIL ? 1.0 : clauselist_selectivity(root, bounds, 0, JOIN_INNER, nullptr);
    return Min(1.0, Max(1.0, path->path.rows) / Max(1.0, rows * within));
}

// The cost of a sequential scan, as PostgreSQL counts it.
Cost sequential_cost(const RelOptInfo* rel)
{
    double page_cost = 0;
    get_tablespace_page_costs(rel->reltablespace, nullptr, &page_cost);
    return page_cost * rel->pages + (cpu_tuple_cost + cpu_operator_cost) * rel->tuples;
}

// The cost of fetching `rows` rows in random order of the pages, as cost_index() counts it.
Cost fetch_cost(PlannerInfo* root, const IndexPath* path, double rows)
{
    const IndexOptInfo* index = path->indexinfo;
    double page_cost = 0;
    get_tablespace_page_costs(index->rel->reltablespace, &page_cost, nullptr);
    double pages = index_pages_fetched(clamp_row_est(rows), index->rel->pages, index->pages, root);
    if (path->path.pathtype == T_IndexOnlyScan) pages *= 1.0 - index->rel->allvisfrac;
    return pages * page_cost;
}

// The cost of comparing one row in the engine.
Cost compare_cost(Relation index)
{
    double width = index_dimensions(index);
    if (index_element_type(index) == ElementType::bit) width /= bits_of_word;
    const double speed_up = engine_has_gpu() ? gpu_speed_up : 1.0;
    return (width + row_dimensions) * dimension_operators * cpu_operator_cost / speed_up;
}

// The cost of the search for `found` rows, before the first row is returned. An approximate method looks at more rows
// the more it has to find, and searches exactly for very many. Results by codes are ranked by rows of the table.
Cost search_cost(PlannerInfo* root, const MethodDescription& method, const IndexPath* path, double found)
{
    Relation index = index_open(path->indexinfo->indexoid, NoLock);
    const double rows = Max(1.0, path->indexinfo->tuples);
    const Cost row_cost = compare_cost(index);
    const SearchCostInput input = {rows, index_stored_options(method, index), method_settings(method)};
    const ResultPromise promise = method.result_promise(input.options, index_metric(index));
    index_close(index, NoLock);
    const Cost all = Min(rows * row_cost, most_of_sequential_scan * sequential_cost(path->indexinfo->rel));
    const bool searches_all = method.complete || found > exact_from;
    const double depth = Max(1.0, found / usual_rows);
    const Cost searching = searches_all ? all : Min(all, method.compared_rows(input) * depth * row_cost);
    if (promise.kind != ResultKind::approximate) return round_trip_cost + searching;
    const auto wanted = static_cast<uint32>(Min(found, static_cast<double>(max_k)));
    const double ranked = Min(rows, static_cast<double>(search_width(promise, wanted)));
    return round_trip_cost + searching + fetch_cost(root, path, ranked) + ranked * row_operators * cpu_operator_cost;
}

}  // namespace

bool is_forbidden_path(const IndexPath* path)
{
    return path->indextotalcost >= forbidden_cost;
}

void estimate_method_cost(const MethodDescription& method, PlannerInfo* root, IndexPath* path, double loop_count,
                          Cost* startup_cost, Cost* total_cost, Selectivity* selectivity, double* correlation,
                          double* pages)
{
    // PostgreSQL looks at the conditions of an index path, but not at what it orders by: workers of a parallel plan
    // have no value of an outer row.
    if (!is_parallel_safe(root, reinterpret_cast<Node*>(path->indexorderbys))) path->path.parallel_safe = false;
    const double rows = Max(1.0, path->indexinfo->tuples);
    // Every row comes out in the end; a partial index has fewer than the table.
    *selectivity = path->indexinfo->rel->tuples > 0 ? Min(1.0, rows / path->indexinfo->rel->tuples) : 1.0;
    *correlation = 0;
    *pages = path->indexinfo->pages;
    if (list_length(path->indexorderbys) != 1 || !engine_available()) {
        forbid(path, startup_cost, total_cost);
        return;
    }
    const double passing = Min(rows, Max(1.0, path->path.rows));
    const Taken taken = taken_rows(root, passing);
    const double fetched = Max(1.0, Min(rows, taken.rows / pass_rate(root, path)));
    *startup_cost = search_cost(root, method, path, fetched);
    // PostgreSQL itself adds what reading the whole table costs.
    const Cost reading = fetch_cost(root, path, fetched) / taken.share - fetch_cost(root, path, rows);
    const Cost handing_on = fetched * (cpu_index_tuple_cost + row_operators * cpu_operator_cost) / taken.share;
    *total_cost = *startup_cost + Max(0.0, reading) + handing_on;
}

}  // namespace pgwarp
