// amcostestimate: the cost of a search in the planner's units. It reads the relcache only, and no page of the index but
// where the effort of its searches decides, which the index keeps.
//
// PostgreSQL counts the share of a path's run cost that the LIMIT takes of the path's rows. But the cost of a scan in
// order of distance is not the same for each row: the search comes before the first row, and the pages of a small table
// are soon in the cache. Therefore the estimate chooses the run cost so that this query's LIMIT takes the right share.
#include "postgres/am/cost.h"

#include "numeric/bits.h"
#include "postgres/am/callbacks.h"
#include "postgres/am/compare_cost.h"
#include "postgres/am/distance_bound.h"
#include "postgres/am/element_type.h"
#include "postgres/am/index_options.h"
#include "postgres/am/method_settings.h"
#include "postgres/am/methods.h"
#include "postgres/am/set_cost.h"
#include "postgres/client/connection.h"
#include "postgres/storage/pgvector_page.h"
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

// An upper bound of the cost of comparing all rows, as a share of a sequential scan: the engine compares all rows in
// less time than the scan takes to read them. PostgreSQL doesn't count the TOAST pages of wide vectors; for these the
// bound is smaller than their comparisons.
constexpr double most_of_sequential_scan = 0.5;
// The cost of returning a row, in units of cpu_operator_cost: sorting, look-up and the check of its visibility.
constexpr double row_operators = 100.0;
// All rows are compared beyond exact_from rows. The usual effort of a search is enough for usual_rows.
constexpr double exact_from = 1024.0;
constexpr double usual_rows = 64.0;
// The comparison of a row that passes keys costs as much as that of these rows: the row lies elsewhere.
constexpr double gathered_rows = 2.0;
// The number assumed for a LIMIT that isn't known when the statement is planned.
constexpr double usual_limit = 100.0;
// More than the cost of a path that is only disabled. An infinite cost would make differences NaN.
constexpr Cost forbidden_cost = 1e15;

// Keeps a path from being chosen.
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

// The expected part of a path that a query reads.
struct Taken {
    double rows;   // that pass the query's filter
    double share;  // of the run cost, as PostgreSQL computes it
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
        // PostgreSQL assumes a tenth for a LIMIT whose number it doesn't know.
        if (root->parse->limitCount != nullptr) return {Min(rows, usual_limit), root->tuple_fraction};
    }
    rows = Min(rows, passing);
    return {rows, rows / passing};
}

// Whether a clause compares the distance that orders the path with a value: `distance < 5`.
bool compares_distance(const RestrictInfo* clause, const Node* distance)
{
    if (!IsA(clause->clause, OpExpr)) return false;
    ListCell* cell;
    foreach (cell, castNode(OpExpr, clause->clause)->args) {
        if (is_same_distance(static_cast<Node*>(lfirst(cell)), distance)) return true;
    }
    return false;
}

// The share of the nearest rows with passing keys that pass the filter. A bound of the distance and IS NOT NULL of the
// key drop none of these, so they are left out.
double pass_rate(PlannerInfo* root, const IndexPath* path, double keyed)
{
    const IndexOptInfo* index = path->indexinfo;
    const auto* distance = static_cast<const Node*>(linitial(path->indexorderbys));
    List* bounds = NIL;
    ListCell* cell;
    foreach (cell, index->indrestrictinfo) {
        auto* clause = static_cast<RestrictInfo*>(lfirst(cell));
        if (compares_distance(clause, distance) || is_key_not_null(clause, distance)) bounds = lappend(bounds, clause);
    }
    const double rows = Max(1.0, index->tuples);
    const double within = bounds == NIL ? 1.0 : clauselist_selectivity(root, bounds, 0, JOIN_INNER, nullptr);
    return Min(1.0, Max(1.0, path->path.rows) / Max(1.0, rows * keyed * within));
}

// The cost of a sequential scan, as PostgreSQL counts it.
Cost sequential_cost(const RelOptInfo* rel)
{
    double page_cost = 0;
    get_tablespace_page_costs(rel->reltablespace, nullptr, &page_cost);
    return page_cost * rel->pages + (cpu_tuple_cost + cpu_operator_cost) * rel->tuples;
}

// The cost of fetching `rows` rows from random pages, as cost_index() counts it.
Cost fetch_cost(PlannerInfo* root, const IndexPath* path, double rows)
{
    const IndexOptInfo* index = path->indexinfo;
    double page_cost = 0;
    get_tablespace_page_costs(index->rel->reltablespace, &page_cost, nullptr);
    double pages = index_pages_fetched(clamp_row_est(rows), index->rel->pages, index->pages, root);
    if (path->path.pathtype == T_IndexOnlyScan) pages *= 1.0 - index->rel->allvisfrac;
    return pages * page_cost;
}

// The dimensions that comparing a row of the index counts as.
double compared_width(Relation index, const IndexOptInfo* info)
{
    const KeyType key = index_key_type(index);
    if (is_of_sets(key.element)) return compared_width_of_sets(key.element, info);
    if (key.list != nullptr) return key.list->width;
    const double width = index_dimensions(index);
    return key.element == ElementType::bit ? width / bits_of_word : width;
}

// The cost of the search for `found` rows, which comes before the first row. A search compares more rows when it has to
// find more, or when a smaller share of them passes its keys; all of them for very many; and no others than those that
// pass where these are few. Approximate results are ranked by rows of the table.
Cost search_cost(PlannerInfo* root, const IndexPath* path, double found, double keyed)
{
    Relation index = index_open(path->indexinfo->indexoid, NoLock);
    const MethodDescription& method = access_method_of(index);
    const double rows = Max(1.0, path->indexinfo->tuples);
    const Cost row_cost = compare_cost(compared_width(index, path->indexinfo));
    const ElementType element = index_element_type(index);
    const SearchCostInput input = {element, rows, index_stored_options(method, index), index_settings(index, element)};
    const ResultPromise promise = method.result_promise(input.options, element, index_metric(index));
    const bool searches_all = found > exact_from;
    const Cost candidates = is_of_sets(element) && !method.complete.has(element) && !searches_all
                                ? candidate_cost(method, index, path->indexinfo, input, found)
                                : 0;
    index_close(index, NoLock);
    const Cost all = Min(rows * row_cost, most_of_sequential_scan * sequential_cost(path->indexinfo->rel));
    const double depth = Max(1.0, found / usual_rows) / Max(keyed, 1.0 / rows);
    const Cost passing = keyed < 1 ? rows * keyed * row_cost * gathered_rows : all;
    const Cost own = candidates + (searches_all ? all : Min(all, method.compared_rows(input) * depth * row_cost));
    const Cost searching = Min(own, passing);
    if (promise.kind != ResultKind::approximate) return round_trip_cost + searching;
    const auto wanted = static_cast<uint32>(Min(found, static_cast<double>(max_k)));
    const double ranked = Min(rows, static_cast<double>(search_width(promise, wanted)));
    return round_trip_cost + searching + fetch_cost(root, path, ranked) + ranked * row_operators * cpu_operator_cost;
}

// Whether the index has pages of this library: one of an alias may be pgvector's own, from before packages were
// exchanged.
bool is_own_file(const IndexOptInfo* info)
{
    Relation index = index_open(info->indexoid, NoLock);
    const bool own = find_alias(index) == nullptr || !is_file_of_pgvector(index);
    index_close(index, NoLock);
    return own;
}

}  // namespace

double share_of_keys(PlannerInfo* root, const IndexPath* path)
{
    const int vector = vector_column(path->indexinfo);
    List* quals = NIL;
    ListCell* cell;
    foreach (cell, path->indexclauses) {
        const auto* clause = lfirst_node(IndexClause, cell);
        if (clause->indexcol != vector) quals = list_concat(quals, clause->indexquals);
    }
    if (quals == NIL) return 1.0;
    return clauselist_selectivity(root, quals, static_cast<int>(path->indexinfo->rel->relid), JOIN_INNER, nullptr);
}

bool is_forbidden_path(const IndexPath* path)
{
    return path->indextotalcost >= forbidden_cost;
}

bool is_key_not_null(const RestrictInfo* info, const Node* distance)
{
    if (!IsA(info->clause, NullTest) || !IsA(distance, OpExpr)) return false;
    const auto* test = castNode(NullTest, info->clause);
    // PostgreSQL puts the key on the left of an index's ORDER BY.
    return test->nulltesttype == IS_NOT_NULL &&
           equal(test->arg, linitial(reinterpret_cast<const OpExpr*>(distance)->args));
}

PartCost cost_among_rows(PlannerInfo* root, const IndexPath* path, double share, double passing)
{
    const double rows = Max(1.0, path->indexinfo->tuples * share);
    passing = Min(rows, Max(1.0, passing));
    const Taken taken = taken_rows(root, passing);
    const double fetched = Max(1.0, taken.rows * rows / passing);
    const Cost search = search_cost(root, path, fetched, share);
    const Cost handing_on = fetched * (cpu_index_tuple_cost + row_operators * cpu_operator_cost);
    return {search, (fetch_cost(root, path, fetched) + handing_on) / taken.share, fetched / taken.share};
}

void estimate_search_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost, Cost* total_cost,
                          Selectivity* selectivity, double* correlation, double* pages)
{
    // PostgreSQL checks the conditions of an index path for parallel safety, but not its ORDER BY expression:
    // workers of a parallel plan have no value of an outer row.
    if (!is_parallel_safe(root, reinterpret_cast<Node*>(path->indexorderbys))) path->path.parallel_safe = false;
    const double rows = Max(1.0, path->indexinfo->tuples);
    // A scan can return every row of the index; a partial index has fewer than the table.
    const double keyed = share_of_keys(root, path);
    *selectivity = keyed * (path->indexinfo->rel->tuples > 0 ? Min(1.0, rows / path->indexinfo->rel->tuples) : 1.0);
    *correlation = 0;
    *pages = path->indexinfo->pages;
    // An index without a page is being built: a function that its expression calls reads the table.
    if (list_length(path->indexorderbys) != 1 || path->indexinfo->pages == 0 || !engine_available() ||
        !is_own_file(path->indexinfo)) {
        forbid(path, startup_cost, total_cost);
        return;
    }
    const double with_keys = Max(1.0, rows * keyed);
    const double passing = Min(with_keys, Max(1.0, path->path.rows));
    const Taken taken = taken_rows(root, passing);
    const double fetched = Max(1.0, Min(with_keys, taken.rows / pass_rate(root, path, keyed)));
    *startup_cost = search_cost(root, path, fetched, keyed);
    // PostgreSQL itself adds the cost of fetching all rows of the path, so that cost is subtracted.
    const Cost reading = fetch_cost(root, path, fetched) / taken.share - fetch_cost(root, path, with_keys);
    const Cost handing_on = fetched * (cpu_index_tuple_cost + row_operators * cpu_operator_cost) / taken.share;
    *total_cost = *startup_cost + Max(0.0, reading) + handing_on;
}

}  // namespace pgwarp
