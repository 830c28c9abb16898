#include "postgres/client/delta_progress.h"

#include "postgres/client/shared_slot.h"

namespace pgwarp
{

namespace
{

// The last note of this session for each index: searches of unchanged indexes take no lock.
constexpr uint32 known_capacity = 64;  // a power of two
DeltaProgressNote last_known[known_capacity];

constexpr uint32 most_unread = 1000;
constexpr Size ends_bytes = sizeof(uint64) * delta_log_count;

DeltaProgressNote* last_note(const MirrorKey& key)
{
    return &last_known[key.relation & (known_capacity - 1)];
}

void remember(const MirrorKey& key, const uint64* ends)
{
    DeltaProgressNote* known = last_note(key);
    known->key = key;
    memcpy(known->ends, ends, ends_bytes);
}

bool is_remembered(const MirrorKey& key, const uint64* ends)
{
    const DeltaProgressNote* known = last_note(key);
    return known->key == key && memcmp(known->ends, ends, ends_bytes) == 0;
}

// Returns the note of this mirror; null when there is none. The caller holds the lock.
DeltaProgressNote* find_note(DeltaProgressNotes* progress, const MirrorKey& key)
{
    for (int i = 0; i < progress->count; ++i) {
        if (progress->notes[i].key == key) return &progress->notes[i];
    }
    return nullptr;
}

DeltaProgressNote* new_note(DeltaProgressNotes* progress, const MirrorKey& key)
{
    int at = progress->count;
    if (at < delta_progress_capacity) {
        progress->count++;
    } else {
        at = progress->next;
        progress->next = (at + 1) % delta_progress_capacity;
    }
    memset(static_cast<void*>(&progress->notes[at]), 0, sizeof(DeltaProgressNote));
    progress->notes[at].key = key;
    return &progress->notes[at];
}

}  // namespace

void note_delta_progress(const MirrorKey& key, const uint64* ends)
{
    if (is_remembered(key, ends)) return;
    remember(key, ends);
    elog(DEBUG2, "pgwarp: noting how far an index's delta rows are for all sessions");
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    DeltaProgressNote* note = find_note(&shared->delta_progress, key);
    if (note == nullptr) note = new_note(&shared->delta_progress, key);
    for (uint32 log = 0; log < delta_log_count; ++log) note->ends[log] = Max(note->ends[log], ends[log]);
    SpinLockRelease(&shared->mutex);
}

bool claim_delta(const MirrorKey& key, const uint64* ends, uint64 most, uint64* have)
{
    if (is_remembered(key, ends)) return false;
    uint64 missing = 0;
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    DeltaProgressNote* note = find_note(&shared->delta_progress, key);
    if (note != nullptr) {
        note->unread = 0;
        memcpy(have, note->ends, ends_bytes);
        for (uint32 log = 0; log < delta_log_count; ++log) missing += ends[log] - Min(have[log], ends[log]);
        if (missing > 0 && missing <= most) {
            for (uint32 log = 0; log < delta_log_count; ++log) note->ends[log] = Max(have[log], ends[log]);
        }
    }
    SpinLockRelease(&shared->mutex);
    return missing > 0 && missing <= most;
}

bool claim_inserted_row(const MirrorKey& key, uint32 log, uint64 ordinal)
{
    SharedSlot* shared = shared_slot();
    if (shared->delta_progress.count == 0) return false;  // no search has noted a mirror; this check needs no lock
    SpinLockAcquire(&shared->mutex);
    DeltaProgressNote* note = find_note(&shared->delta_progress, key);
    const bool claim = note != nullptr && note->ends[log] == ordinal && note->unread < most_unread;
    if (claim) {
        note->ends[log] = ordinal + 1;
        note->unread++;
    }
    SpinLockRelease(&shared->mutex);
    return claim;
}

}  // namespace pgwarp
