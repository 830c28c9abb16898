// A merge on its way, shared by the files that make it up.
#pragma once

#include "postgres/am/methods.h"
#include "postgres/build/engine_build.h"
#include "postgres/merge/merge_kind.h"
#include "postgres/storage/array_stream.h"
#include "postgres/storage/tombstones.h"

namespace pgwarp
{

struct MergeRun {
    Relation index;
    MergeReason reason;
    const MethodDescription* method;
    MetaPage meta;
    const Directory* directory;
    uint64 ends[delta_log_count];  // as far as the logs are merged
    bool more;                     // they go on: the next step's
    RowCounts counts;              // of placed rows, up to these ends
    uint64 unplaced_end;           // as far as the log of unplaced rows is merged
    RowCounts unplaced;            // up to that end
    const uint64* dead;            // bitmap of dead rows
    MergeKind kind;
    PageSource pages;
    EngineBuild build;  // where the engine encodes or builds
    const BuildRunReply* built;
    TransferBuffer buffer;
    MetaPage next_meta;
    Directory next;
    bool loads_ahead;  // the engine holds a mirror of what comes next, but for its logs

    uint64 old_rows() const { return counts.rows - counts.dead_rows; }    // that stay
    uint64 new_rows() const { return counts.delta - counts.dead_delta; }  // that come from the logs
    uint64 merged_rows() const { return new_rows() + unplaced.delta - unplaced.dead_delta; }
};

// Lets others go first, as VACUUM does, and notes progress.
void merge_delay_point();
void report_merge(const char* phase, uint64 done, uint64 total);

// merge_plan.cpp: counts, and decides what is to be done with the logs up to `goal`, or in a first step.
void plan_merge(MergeRun* merge, const uint64* goal);
bool needs_engine(const MergeRun* merge);

// merge_engine.cpp: reads a part of an array; an error where a page of it was given to another use.
void read_stored(Relation index, const Directory& directory, const StoredArray& array, uint64 offset, uint64 length,
                 void* out);
// Gives an engine's build an array of the index whole, noting progress where a phase is named; and one that lies in
// memory.
void give_stored_array(const EngineBuild* build, Relation index, const Directory& directory, const StoredArray& array,
                       const char* phase = nullptr);
void give_made_array(const EngineBuild* build, const ArrayShape& shape, const void* bytes);
// Whether an array holds the rows' addresses.
bool is_address_array(const char* name);

// merge_lists.cpp: for each vector [count][dimensions] the list whose centroid is nearest as a build compares them.
struct NearestList {
    uint32 list;
    double score;     // smaller for nearer ones
    double error;     // squared L2 distance to the centroid
    double farthest;  // squared L2 distance to the farthest centroid
};
void find_nearest_lists(Relation index, const IndexShape& shape, const Directory& directory, const float* vectors,
                        uint32 count, NearestList* nearest);
// How one centroid compares.
NearestList compare_list(const IndexShape& shape, const float* vector, const float* centroid, uint32 list);
void read_centroid(Relation index, const IndexShape& shape, const Directory& directory, uint32 list, float* out);

// merge.cpp: enters an array into the next generation; the second reads it whole from the engine.
void add_array(MergeRun* merge, const StoredArray& array);
void add_built_array(MergeRun* merge, uint32 number, const ArrayShape& shape);

// merge_links.cpp: carries an array of links over to which rows are added. False when it is none, or only grows.
bool carry_links(MergeRun* merge, const StoredArray& old);
// Enters the changes of links when there were none before.
void add_first_link_changes(MergeRun* merge);

// merge_recall.cpp: of a method whose rows are linked. How many dead rows searches still pass through; whether so many
// rows have come or gone that recall is to be measured; that what was measured is taken over; and whether so much more
// effort is needed now than after a build that the index should be built anew.
uint64 linked_dead_rows(const MergeRun* merge);
bool wants_recall(const MergeRun* merge);
void keep_recall(MergeRun* merge);
bool recall_has_dropped(const Directory& directory);

// merge_drift.cpp: whether new rows differ so much from those that the quantizers were trained on that they should be
// trained again. False for an index without quantizers, and without the engine, which compares them.
bool has_drifted(MergeRun* merge);
// Whether the index keeps vectors to train on.
bool can_retrain(const MergeRun* merge);

// merge_rows.cpp: the rows.
using DeltaVisit = void (*)(void* state, const DeltaEntry& entry, const float* vector);
// Visits the live entries of all logs up to the merge's ends; vector is null unless wanted.
void visit_delta(MergeRun* merge, bool want_vectors, DeltaVisit visit, void* state);
// Writes the live rows of an array, as they are.
void copy_live_rows(MergeRun* merge, const StoredArray& array, ArrayWriter* writer);
// Writes the rows of the logs for one of the arrays that need no engine: the addresses and "vectors".
void write_delta_rows(MergeRun* merge, const char* array, ArrayWriter* writer);

// merge_unplaced.cpp: writes the unplaced rows anew where some have come or gone, or all pages are to move.
void carry_unplaced(MergeRun* merge);

// merge_included.cpp: writes the included columns of the next generation's rows, whose addresses are written already.
void carry_included(MergeRun* merge);

// merge_engine.cpp: lets the engine encode the rows of the logs, or build with all rows.
void run_in_engine(MergeRun* merge);
// The shape of this name that the engine made, and its number; null when there is none.
const ArrayShape* find_built(const MergeRun* merge, const char* name, uint32* number);
void copy_built_array(MergeRun* merge, uint32 number, const ArrayShape& shape, ArrayWriter* writer);

// merge_validate.cpp: compares a sample of what was written with what the logs hold. Raises an error when it differs.
void validate_merge(MergeRun* merge);

// merge_recall.cpp: has the engine measure the recall of the next generation anew, by a sample of its rows, where
// many rows have come or gone since that was done.
void calibrate_merged(MergeRun* merge);

}  // namespace pgwarp
