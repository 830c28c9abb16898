// The state of one merge, and the functions of the files that implement it.
#pragma once

#include "postgres/am/methods.h"
#include "postgres/build/engine_build.h"
#include "postgres/merge/merge_kind.h"
#include "postgres/storage/array_stream.h"
#include "postgres/storage/tombstones.h"

namespace pgwarp
{

inline constexpr uint64 rows_between_delays = 256;  // points at which a merge gives way, among rows that it copies

// One merge, or one step of it. Allocated in the merge's memory context.
struct MergeRun {
    Relation index;
    MergeReason reason;
    const MethodDescription* method;
    MetaPage meta;
    const Directory* directory;
    uint64 ends[delta_log_count];  // ends of the merged parts of the logs
    bool more;                     // the logs have more entries, for another step
    RowCounts counts;              // of placed rows, up to these ends
    uint64 unplaced_end;           // end of the merged part of the log of unplaced rows
    RowCounts unplaced;            // counts of unplaced rows, up to that end
    bool writes_unplaced;          // the segment of unplaced rows is written again
    const uint64* dead;            // bitmap of dead rows
    MergeKind kind;
    PageSource pages;
    EngineBuild build;  // a build of the engine, which encodes the new rows or all rows
    const BuildRunReply* built;
    TransferBuffer buffer;
    MetaPage next_meta;
    Directory next;
    bool loads_ahead;  // the engine loads the next generation, except its logs, before the switch

    uint64 old_rows() const { return counts.rows - counts.dead_rows; }    // rows of the arrays that stay
    uint64 new_rows() const { return counts.delta - counts.dead_delta; }  // rows of the logs that come in
    bool row_is_dead(uint64 row) const { return ((dead[row / 64] >> (row % 64)) & 1) != 0; }
    uint64 merged_rows() const { return new_rows() + unplaced.delta - unplaced.dead_delta; }
};

// Sleeps as VACUUM's cost delay demands, and releases the catalog snapshot.
void merge_delay_point();
// Shows `done` of `total` units of a phase of the merge.
void report_merge(const char* phase, uint64 done, uint64 total);

// merge_plan.cpp: counts rows and chooses the kind of the merge, for the logs up to `goal` or, when these hold many
// rows, for a first step.
void plan_merge(MergeRun* merge, const uint64* goal);
bool needs_engine(const MergeRun* merge);

// merge_engine.cpp: reads a part of an array. Raises an error when a page of it has other content by now.
void read_stored(Relation index, const Directory& directory, const StoredArray& array, uint64 offset, uint64 length,
                 void* out);
// Sends a whole array of the index to an engine's build, with progress if a phase is named. The second sends an array
// in memory.
void give_stored_array(const EngineBuild* build, Relation index, const Directory& directory, const StoredArray& array,
                       const char* phase = nullptr);
void give_made_array(const EngineBuild* build, const ArrayShape& shape, const void* bytes);
// Whether arrays of this name belong to every method: addresses and attributes of rows.
bool is_shared_array(const char* name);

// merge_centroids.cpp: finds, for each vector [count][dimensions], the list whose centroid is nearest, compared as in a
// build.
struct NearestList {
    uint32 list;
    double score;     // smaller is nearer
    double error;     // squared L2 distance to the centroid
    double farthest;  // squared L2 distance to the farthest centroid
};
void find_nearest_lists(Relation index, const IndexShape& shape, const Directory& directory, const float* vectors,
                        uint32 count, NearestList* nearest);
// Compares a vector with one centroid.
NearestList compare_list(const IndexShape& shape, const float* vector, const float* centroid, uint32 list);
void read_centroid(Relation index, const IndexShape& shape, const Directory& directory, uint32 list, float* out);

// merge.cpp: adds an array to the next generation; the second copies it from the engine.
void add_array(MergeRun* merge, const StoredArray& array);
void add_built_array(MergeRun* merge, uint32 number, const ArrayShape& shape);

// merge_links.cpp: carries an array of links over. False when the array has no links, or only grows.
bool carry_links(MergeRun* merge, const StoredArray& old);
// Adds the array of link changes when the index had none.
void add_first_link_changes(MergeRun* merge);

// merge_recall.cpp, for methods whose rows are linked: the number of dead rows that searches still pass through;
// whether recall must be measured again because many rows have come or gone; taking over the engine's measurements;
// whether searches now need so much more effort than after the last build that the index should be built again.
uint64 linked_dead_rows(const MergeRun* merge);
bool wants_recall(const MergeRun* merge);
void keep_recall(MergeRun* merge);
bool recall_has_dropped(const Directory& directory);

// merge_drift.cpp: whether new rows differ so much from the trained rows that the quantizers should be trained again.
// False for an index without quantizers, and when there is no engine, which compares the rows.
bool has_drifted(MergeRun* merge);
// Whether the index keeps vectors to train on.
bool can_retrain(const MergeRun* merge);

// merge_rows.cpp
using EntryVisit = void (*)(void* state, const DeltaEntry& entry);
using RowVisit = void (*)(void* state, Tid tid, const RowView& row);
// Visit the live entries of all logs up to the merge's ends; the second reads their rows too.
void visit_delta_entries(MergeRun* merge, EntryVisit visit, void* state);
void visit_delta(MergeRun* merge, RowVisit visit, void* state);
// Copies the live rows of an array.
void copy_live_rows(MergeRun* merge, const StoredArray& array, ArrayWriter* writer);
// Writes the rows of the logs to an array that needs no engine: addresses, attributes, or dense rows as they came.
void write_delta_rows(MergeRun* merge, const char* array, ArrayWriter* writer);

// merge_list_rows.cpp, for rows that are lists: whether an array is one of the three that hold them; and writing these
// arrays, with the lists of live rows, then those of new rows.
bool is_list_array(const MethodDescription& method, const char* name);
void carry_list_rows(MergeRun* merge);

// merge_unplaced.cpp: writes the segment of unplaced rows again, if the merge is to.
void carry_unplaced(MergeRun* merge);

// merge_included.cpp: writes the included columns of the next generation's rows. The rows' addresses are already
// written.
void carry_included(MergeRun* merge);

// merge_engine.cpp: has the engine encode the rows of the logs, or build with all rows.
void run_in_engine(MergeRun* merge);
// The shape of the engine's array of this name, and its number; null when there is none.
const ArrayShape* find_built(const MergeRun* merge, const char* name, uint32* number);
void copy_built_array(MergeRun* merge, uint32 number, const ArrayShape& shape, ArrayWriter* writer);

// merge_validate.cpp: raises the error for wrong work of the engine.
[[noreturn]] void report_wrong(const MergeRun* merge, const char* what);
// Compares a sample of the written rows with the logs. Raises an error when they differ.
void validate_merge(MergeRun* merge);

// merge_recall.cpp: has the engine measure the recall of the next generation by a sample of its rows, when many rows
// have come or gone since the last measurement.
void calibrate_merged(MergeRun* merge);

}  // namespace pgwarp
