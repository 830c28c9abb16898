#include "postgres/planner/bound_selectivity.h"

#include "postgres/am/distance_bound.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
}

namespace pgwarp
{

namespace
{

// The widest bounds that few rows are expected within.
constexpr double usual_edits = 8;
constexpr double usual_jaccard_distance = 0.8;  // of grams and of sets
// The widest bounds of rows that are nearly the query. They are few however many rows the table has: else the planner
// would read a large table for `EXISTS` or `LIMIT 1`, in the hope to meet one of them soon.
constexpr double near_edits = 3;
constexpr double near_jaccard_distance = 0.5;
constexpr double near_rows = 10;
// Rows that share an element, where a bound asks for no more.
constexpr Selectivity usual_sharing = 0.01;
// PostgreSQL's guess stands.
constexpr Selectivity unknown_share = -1;
constexpr Selectivity usual_matched = 0.5;  // of the rows of a semi join

// Whether every distance up to `farthest` is within a bound.
bool holds_for_all(const UpperBound& bound, double value, double farthest)
{
    return bound.strict ? value > farthest : value >= farthest;
}

// Returns the share of a table's rows that are nearly the query.
Selectivity near_share(double tuples)
{
    return Min(usual_within, near_rows / Max(1.0, tuples));
}

// Returns the share of a table's rows that is expected within a bound of this value.
Selectivity share_within(Metric metric, const UpperBound& bound, double value, double tuples)
{
    switch (metric) {
        case Metric::overlap:
            if (holds_for_all(bound, value, 0)) return 1;
            return holds_for_all(bound, value, -1) ? usual_sharing : usual_within;
        case Metric::bm25:
            return holds_for_all(bound, value, 0) ? 1 : usual_within;
        case Metric::set_jaccard:
            if (holds_for_all(bound, value, 1)) return 1;
            [[fallthrough]];
        case Metric::gram_jaccard:
            if (value <= near_jaccard_distance) return near_share(tuples);
            return value > usual_jaccard_distance ? unknown_share : usual_within;
        default:
            if (value <= near_edits) return near_share(tuples);
            return value > usual_edits ? unknown_share : usual_within;
    }
}

// The same for a clause, which may be no bound of the index's distance, or one that is not known yet.
Selectivity share_within(PlannerInfo* root, const IndexOptInfo* index, const RestrictInfo* info, Metric metric)
{
    UpperBound bound = {};
    if (find_bounded_distance(root, index, info) == nullptr) return unknown_share;
    if (!split_bound(info->clause, &bound) || !IsA(bound.value, Const)) return usual_within;
    const auto* value = castNode(Const, bound.value);
    if (value->constisnull) return usual_within;
    return share_within(metric, bound, bound_as_double(value->constvalue, value->consttype), index->rel->tuples);
}

// Whether a clause asks whether a row has a match: then its selectivity is the share of rows that have one.
bool is_of_semi_join(const PlannerInfo* root, const RestrictInfo* info)
{
    ListCell* cell;
    foreach (cell, root->join_info_list) {
        const auto* join = static_cast<const SpecialJoinInfo*>(lfirst(cell));
        const bool semi = join->jointype == JOIN_SEMI || join->jointype == JOIN_ANTI;
        if (semi && bms_overlap(join->syn_righthand, info->clause_relids)) return true;
    }
    return false;
}

// PostgreSQL keeps a clause's selectivity here once it is known.
void set_selectivity(const PlannerInfo* root, RestrictInfo* info, Selectivity share)
{
    info->norm_selec = share;
    info->outer_selec = is_of_semi_join(root, info) ? usual_matched : share;
}

RelOptInfo* parent_of(const PlannerInfo* root, const RelOptInfo* rel)
{
    if (root->append_rel_array == nullptr || root->append_rel_array[rel->relid] == nullptr) return nullptr;
    return root->simple_rel_array[root->append_rel_array[rel->relid]->parent_relid];
}

// A share of at most usual_within stands for one row for each outer row. Joins are estimated by the clauses of parents:
// of partitioned tables, inheritance and UNION ALL. A child's join clauses are its parent's, in the same order.
void set_join_selectivity(const PlannerInfo* root, const RelOptInfo* rel, int place, Selectivity share)
{
    const int count = list_length(rel->joininfo);
    for (; rel != nullptr && list_length(rel->joininfo) == count; rel = parent_of(root, rel)) {
        set_selectivity(root, list_nth_node(RestrictInfo, rel->joininfo, place),
                        share <= usual_within ? 1.0 / Max(1.0, rel->tuples) : share);
    }
}

// Paths of a share of the rows keep their share.
void scale_rows(List* paths, double factor)
{
    ListCell* cell;
    foreach (cell, paths) {
        auto* path = static_cast<Path*>(lfirst(cell));
        if (path->param_info == nullptr) path->rows = clamp_row_est(path->rows * factor);
    }
}

}  // namespace

bool set_bound_selectivity(PlannerInfo* root, RelOptInfo* rel, IndexOptInfo* index, Metric metric)
{
    bool any = false;
    ListCell* cell;
    foreach (cell, rel->baserestrictinfo) {
        auto* info = lfirst_node(RestrictInfo, cell);
        const Selectivity share = share_within(root, index, info, metric);
        if (share == unknown_share) continue;
        set_selectivity(root, info, share);
        any = true;
    }
    foreach (cell, rel->joininfo) {
        auto* info = lfirst_node(RestrictInfo, cell);
        const Selectivity share = share_within(root, index, info, metric);
        if (share != unknown_share) set_join_selectivity(root, rel, foreach_current_index(cell), share);
    }
    return any;
}

void estimate_rows_again(PlannerInfo* root, RelOptInfo* rel)
{
    const double before = Max(1.0, rel->rows);
    rel->rows =
        clamp_row_est(rel->tuples * clauselist_selectivity(root, rel->baserestrictinfo, 0, JOIN_INNER, nullptr));
    scale_rows(rel->pathlist, rel->rows / before);
    scale_rows(rel->partial_pathlist, rel->rows / before);
    ListCell* cell;
    foreach (cell, rel->ppilist) {
        auto* parameters = static_cast<ParamPathInfo*>(lfirst(cell));
        parameters->ppi_rows = get_parameterized_baserel_size(root, rel, parameters->ppi_clauses);
    }
}

void sum_rows_of_children(const PlannerInfo* root, RelOptInfo* rel)
{
    double rows = 0;
    ListCell* cell;
    foreach (cell, root->append_rel_list) {
        const auto* member = lfirst_node(AppendRelInfo, cell);
        if (member->parent_relid == rel->relid) rows += root->simple_rel_array[member->child_relid]->rows;
    }
    rel->rows = Min(rel->rows, clamp_row_est(rows));
}

}  // namespace pgwarp
