// Methods whose rows are linked: what is to be measured of the links that merges make, and what is kept of it.
#include <cmath>

#include "postgres/merge/merge.h"
#include "postgres/merge/merge_run.h"
#include "protocol/calibration.h"
#include "protocol/merge_build.h"

namespace pgwarp
{

namespace
{

constexpr uint64 changed_part = 4;      // of the rows, that has come or gone since the last measurement before another
constexpr double judged_recall = 0.95;  // of the ten nearest
constexpr double most_effort = 1.5;     // times what a build needed for that
constexpr uint32 judged_column = 1;     // of Calibration::ks
static_assert(Calibration::ks[judged_column] == 10);

// The effort at which the curve passes the recall that is judged, between two that were measured; 0 when it never does.
double needed_effort(const Calibration& calibration)
{
    for (uint32 i = 0; i < calibration.count; ++i) {
        const CalibrationPoint& point = calibration.points[i];
        const double recall = point.recall[judged_column];
        if (recall < judged_recall) continue;
        const auto effort = static_cast<double>(point.effort);
        if (i == 0) return effort;
        const CalibrationPoint& before = calibration.points[i - 1];
        const double rise = recall - before.recall[judged_column];
        const double share = rise > 0 ? (judged_recall - before.recall[judged_column]) / rise : 1;
        return static_cast<double>(before.effort) * pow(effort / static_cast<double>(before.effort), share);
    }
    return 0;
}

}  // namespace

uint64 linked_dead_rows(const MergeRun* merge)
{
    const auto unlinked = static_cast<uint64>(merge->directory->options.get(option_unlinked, 0));
    return merge->counts.dead_rows - Min(unlinked, merge->counts.dead_rows);
}

bool wants_recall(const MergeRun* merge)
{
    return can_calibrate(*merge->directory) && merge->next.changed_rows > merge->next.rows / changed_part;
}

void keep_recall(MergeRun* merge)
{
    Directory* next = &merge->next;
    const bool append = merge->kind == MergeKind::append;
    const auto unlinked = static_cast<int64>(append ? merge->counts.dead_rows : 0);
    if (unlinked > 0 || next->options.get(option_unlinked, 0) > 0) next->options.set(option_unlinked, unlinked);
    if (merge->built->calibration.count == 0) return;
    if (next->options.get(option_built_effort, 0) == 0) {
        const double built = needed_effort(merge->directory->calibration);
        next->options.set(option_built_effort, static_cast<int64>(ceil(built)));
    }
    next->calibration = merge->built->calibration;
    next->changed_rows = 0;
    elog(DEBUG1, "index \"%s\": a recall of %g takes an effort of %.1f, after its build " INT64_FORMAT,
         RelationGetRelationName(merge->index), judged_recall, needed_effort(next->calibration),
         next->options.get(option_built_effort, 0));
}

bool has_sunk(const Directory& directory)
{
    const auto built = static_cast<double>(directory.options.get(option_built_effort, 0));
    if (built <= 0 || directory.calibration.count == 0) return false;
    const double now = needed_effort(directory.calibration);
    return now == 0 || now > most_effort * built;
}

}  // namespace pgwarp
