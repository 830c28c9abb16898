// Chooses the kind of a merge, and the part of the logs that it takes.
#include "postgres/am/index_options.h"
#include "postgres/client/delta_cost.h"
#include "postgres/client/request.h"
#include "postgres/merge/merge.h"
#include "postgres/merge/merge_run.h"
#include "postgres/merge/stored_vectors.h"
#include "postgres/settings.h"

namespace pgwarp
{

namespace
{

constexpr double delta_share = 0.25;           // share of a search's cost that the logs may add
constexpr double dead_share = 0.2;             // share of the rows that may be dead
constexpr uint64 few_rows = 1000;              // fewer rows are not worth a merge
constexpr uint64 fewest_step_rows = 1U << 17;  // rows that a merge takes at a time, at least
constexpr uint64 steps = 8;                    // or the index's rows divided by this, if more
constexpr double linked_share = 1.0 / 64;      // part of the rows in the logs that is worth a merge of linked rows
constexpr double passed_share = 0.1;           // share of dead rows that searches may pass through
constexpr double growth = 2;           // factor of the trained rows above which the quantizers are trained again
constexpr double small_growth = 1.25;  // of a small index in which nothing detects drift
constexpr uint64 small_rows = 1U << 14;

bool stores_rows(const MergeRun* merge)
{
    return merge->method->stores_rows.has(merge->meta.shape.element);
}

bool has_many_dead(const RowCounts& counts)
{
    const uint64 dead = counts.dead_rows + counts.dead_delta;
    return dead > few_rows && static_cast<double>(dead) > dead_share * static_cast<double>(counts.live() + dead);
}

// Whether VACUUM should merge: searches are too slow or miss too much, or many rows are dead.
bool costs_too_much(const MergeRun* merge)
{
    const RowCounts& counts = merge->counts;
    if (logs_cost_too_much(merge->index, merge->meta, merge->directory->rows, merge->directory->options, counts.delta))
        return true;
    if (merge->method->links_rows) {
        const uint64 passed = linked_dead_rows(merge);
        if (recall_has_dropped(*merge->directory)) return true;
        if (passed > few_rows && static_cast<double>(passed) > passed_share * static_cast<double>(counts.rows))
            return true;
    }
    return has_many_dead(counts);
}

// Whether the unplaced rows justify that their whole segment is written again: their log may grow in proportion to it.
bool unplaced_want_merge(const MergeRun* merge)
{
    const RowCounts& counts = merge->unplaced;
    if (merge->reason == MergeReason::asked) return counts.delta > 0 || counts.dead_rows > 0;
    const double most = Max(static_cast<double>(few_rows), delta_share * static_cast<double>(counts.rows));
    return has_many_dead(counts) || static_cast<double>(counts.delta) > most;
}

// Whether all arrays are written again.
bool wants_fresh_arrays(const MergeRun* merge)
{
    const RowCounts& counts = merge->counts;
    return merge->reason == MergeReason::room ||
           static_cast<double>(counts.dead_rows) > dead_share * static_cast<double>(counts.rows);
}

// Whether there are so many more rows than were trained on that another training pays. The number of centroids in a
// tree follows from the rows up to 16,384 of them, and the training takes less than a second there: a tree of 8,000
// rows that was trained on 4,100 finds .013 less at the same number of candidates, and one that was trained on 6,500
// .003 less. Where drift is detected, lists that are unlike the rows are trained again before.
bool has_outgrown(const MergeRun* merge)
{
    const bool is_small = merge->counts.live() <= small_rows;
    const bool detects_drift = compared_for_drift(*merge->method, *merge->directory) != nullptr;
    const auto trained = static_cast<double>(Max(uint64{merge->directory->trained_rows}, few_rows));
    return static_cast<double>(merge->counts.live()) > (is_small && !detects_drift ? small_growth : growth) * trained;
}

// Warn that the index keeps no vectors to train its quantizers on.
void report_drift(const MergeRun* merge)
{
    ereport(WARNING,
            (errmsg("rows of index \"%s\" have become unlike those that it was built with",
                    RelationGetRelationName(merge->index)),
             errdetail("It keeps no vectors to train its quantizers on, and its recall may be lower than measured."),
             errhint("REINDEX it.")));
}

// Choose the kind of merge for a method whose rows are linked.
MergeKind choose_for_links(MergeRun* merge)
{
    if (merge->old_rows() == 0) return MergeKind::rebuild;
    // A build costs a fifth of the searches that link the same number of rows.
    const bool few_stay = merge->new_rows() > merge->old_rows() / 2;
    if ((few_stay || recall_has_dropped(*merge->directory)) && can_retrain(merge)) return MergeKind::rebuild;
    if (!halves_hold_new_rows(merge)) return MergeKind::rebuild;
    if (wants_fresh_arrays(merge)) return MergeKind::compact;
    return merge->counts.delta > 0 || linked_dead_rows(merge) > 0 ? MergeKind::append : MergeKind::none;
}

MergeKind choose_for_placed(MergeRun* merge)
{
    const RowCounts& counts = merge->counts;
    const bool dropped = merge->method->links_rows && recall_has_dropped(*merge->directory);
    const bool moves = merge->reason == MergeReason::room;
    if (counts.delta == 0 && counts.dead_rows == 0 && !dropped && !moves) return MergeKind::none;
    if (merge->reason == MergeReason::vacuum && !costs_too_much(merge)) return MergeKind::none;
    if (counts.live() == 0) return MergeKind::clear;
    if (merge->method->links_rows) return choose_for_links(merge);
    if (!stores_rows(merge)) {
        if (merge->old_rows() == 0) return MergeKind::rebuild;
        if (can_retrain(merge) && has_outgrown(merge)) return MergeKind::rebuild;
        if (has_drifted(merge)) {
            if (can_retrain(merge)) return MergeKind::rebuild;
            report_drift(merge);
        }
    }
    if (wants_fresh_arrays(merge) || counts.rows + merge->new_rows() > max_rows) return MergeKind::compact;
    return counts.delta > 0 ? MergeKind::append : MergeKind::none;
}

void count_up_to_ends(MergeRun* merge)
{
    if (merge->directory != nullptr &&
        count_rows(merge->index, merge->meta, *merge->directory, merge->ends, &merge->counts) != ReadResult::recycled &&
        count_unplaced_rows(merge->index, merge->meta, *merge->directory, merge->unplaced_end, &merge->unplaced) !=
            ReadResult::recycled) {
        return;
    }
    elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
}

// Leave the logs of placed rows as they are.
void take_unplaced_alone(MergeRun* merge)
{
    merge->kind = MergeKind::unplaced;
    for (uint32 log = 0; log < delta_log_count; ++log) merge->ends[log] = merge->meta.logs[log].start;
    count_up_to_ends(merge);
}

// Choose whether the segment of unplaced rows is written again: in the last step only, or when all pages move. If not,
// leave their log as it is.
void choose_for_unplaced(MergeRun* merge)
{
    const bool moves = keeps_unplaced(merge->meta) && merge->reason == MergeReason::room;
    merge->writes_unplaced = moves || (!merge->more && unplaced_want_merge(merge));
    if (merge->writes_unplaced) return;
    merge->unplaced_end = merge->meta.logs[unplaced_log].start;
    merge->unplaced.delta = 0;
    merge->unplaced.dead_delta = 0;
}

// Leave a part of the logs to another step, so that a cancelled merge loses little work.
void take_one_step(MergeRun* merge)
{
    const uint64 most = setting_merge_step_rows > 0 ? static_cast<uint64>(setting_merge_step_rows)
                                                    : Max(fewest_step_rows, merge->counts.rows / steps);
    uint64 entries = 0;
    for (uint32 log = 0; log < delta_log_count; ++log) entries += merge->ends[log] - merge->meta.logs[log].start;
    if (entries <= most) return;
    for (uint32 log = 0; log < delta_log_count; ++log) {
        const uint64 start = merge->meta.logs[log].start;
        const double share = static_cast<double>(merge->ends[log] - start) / static_cast<double>(entries);
        merge->ends[log] = Min(merge->ends[log], start + static_cast<uint64>(share * static_cast<double>(most)) + 1);
    }
    merge->more = true;
    count_up_to_ends(merge);
}

}  // namespace

bool needs_engine(const MergeRun* merge)
{
    if (merge->kind == MergeKind::rebuild) return true;
    const bool writes = merge->kind == MergeKind::append || merge->kind == MergeKind::compact;
    if (!writes || stores_rows(merge)) return false;
    return merge->new_rows() > 0 || merge->method->links_rows;
}

bool logs_cost_too_much(Relation index, const MetaPage& meta, uint64 rows, const ParameterList& options, uint64 entries)
{
    if (entries <= few_rows) return false;
    const MethodDescription& method = access_method_of(index);
    const SearchCostInput input = {meta.shape.element, Max(1.0, static_cast<double>(rows)), options, {}};
    if (method.links_rows && static_cast<double>(entries) <= linked_share * input.rows) return false;
    const double measured = measured_delta_cost(index, meta, entries);
    if (measured >= 0) return measured > delta_share;
    return static_cast<double>(entries) > delta_share * method.compared_rows(input);
}

void plan_merge(MergeRun* merge, const uint64* goal)
{
    Relation index = merge->index;
    merge->meta = read_metapage(index);
    merge->directory = read_directory(index, merge->meta);
    memcpy(merge->ends, goal, sizeof(merge->ends));
    merge->unplaced_end = read_unplaced_end(index, merge->meta);
    count_up_to_ends(merge);
    merge->dead = read_row_tombstones(index, *merge->directory);
    merge->kind = choose_for_placed(merge);
    if (merge->kind == MergeKind::none && unplaced_want_merge(merge)) take_unplaced_alone(merge);
    if (merge->kind == MergeKind::append) take_one_step(merge);
    choose_for_unplaced(merge);
    if (merge->counts.live() > max_rows) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("an index cannot have more than " UINT64_FORMAT " rows", max_rows)));
    }
    char* why = nullptr;
    if (merge->reason != MergeReason::asked && needs_engine(merge) && !try_open_engine(&why)) {
        ereport(WARNING,
                (errmsg("the merge of index \"%s\" is left for later: %s", RelationGetRelationName(index), why)));
        merge->kind = MergeKind::none;
    }
}

}  // namespace pgwarp
