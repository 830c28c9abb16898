#include "postgres/client/delta_cost.h"

#include <cmath>

#include "postgres/client/shared_slot.h"

extern "C" {
#include "miscadmin.h"
}

namespace pgwarp
{

namespace
{

constexpr float noted_change = 0.02F;  // least change of the cost that is noted again
constexpr uint64 noted_growth = 16;    // 1 / least relative growth of the entries that is noted again
constexpr uint64 believed_growth = 2;  // largest factor of growth over which a measured cost is extrapolated

// The last note of this session for each index: a search that measures the same again takes no lock.
constexpr uint32 noted_capacity = 64;  // a power of two
DeltaCostNote last_noted[noted_capacity];

DeltaCostNote* last_note(Relation index)
{
    return &last_noted[RelationGetRelid(index) & (noted_capacity - 1)];
}

bool is_of(const DeltaCostNote& note, Relation index)
{
    return note.index == RelationGetRelid(index) && note.database == MyDatabaseId;
}

// Whether the new cost differs little from the noted one.
bool is_known(const DeltaCostNote& note, Relation index, const MetaPage& meta, uint64 entries, float cost)
{
    return is_of(note, index) && note.generation == placed_generation(meta.generation) &&
           std::fabs(note.cost - cost) < noted_change && entries >= note.entries &&
           entries - note.entries <= note.entries / noted_growth;
}

// Returns the note of this index; null when there is none. The caller holds the lock.
DeltaCostNote* find_note(DeltaCostNotes* costs, Relation index)
{
    for (DeltaCostNote& note : costs->notes) {
        if (is_of(note, index)) return &note;
    }
    return nullptr;
}

}  // namespace

void note_delta_cost(Relation index, const MetaPage& meta, const uint64* ends, float cost)
{
    uint64 entries = 0;
    for (uint32 log = 0; log < delta_log_count; ++log) entries += ends[log] - Min(ends[log], meta.logs[log].start);
    DeltaCostNote* last = last_note(index);
    if (!(cost >= 0) || entries == 0 || is_known(*last, index, meta, entries, cost)) return;
    *last = {MyDatabaseId, RelationGetRelid(index), placed_generation(meta.generation), entries, cost};
    elog(DEBUG2, "pgwarp: noting the cost of delta rows for all sessions");
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    DeltaCostNotes* costs = &shared->delta_costs;
    DeltaCostNote* note = find_note(costs, index);
    if (note == nullptr) {
        note = &costs->notes[costs->next];
        costs->next = (costs->next + 1) % delta_cost_capacity;
    }
    *note = *last;
    SpinLockRelease(&shared->mutex);
}

double measured_delta_cost(Relation index, const MetaPage& meta, uint64 entries)
{
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    const DeltaCostNote* found = find_note(&shared->delta_costs, index);
    const DeltaCostNote note = found != nullptr ? *found : DeltaCostNote();
    SpinLockRelease(&shared->mutex);
    if (note.entries == 0 || note.generation != placed_generation(meta.generation)) return -1;
    // Since the measurement the log has grown much: a cost measured with few entries predicts little for many.
    if (entries > believed_growth * note.entries) return -1;
    return static_cast<double>(note.cost) * static_cast<double>(Max(entries, note.entries)) /
           static_cast<double>(note.entries);
}

}  // namespace pgwarp
