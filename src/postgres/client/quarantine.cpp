#include "postgres/client/quarantine.h"

#include "postgres/client/shared_slot.h"

extern "C" {
#include "utils/timestamp.h"
}

namespace pgwarp
{

// Return the entry of this index, or the one whose quarantine ended first. The caller holds the mutex.
static QuarantineEntry* quarantine_entry(SharedSlot* shared, const MirrorKey& key)
{
    QuarantineEntry* oldest = &shared->quarantine[0];
    for (QuarantineEntry& entry : shared->quarantine) {
        if (entry.key == key) return &entry;
        if (entry.until < oldest->until) oldest = &entry;
    }
    return oldest;
}

bool index_is_quarantined(const MirrorKey& key)
{
    SharedSlot* shared = shared_slot();
    // Read without the lock: a quarantine that begins at this moment counts from the next search on.
    if (!*static_cast<volatile bool*>(&shared->any_quarantine)) return false;
    TimestampTz until = 0;
    SpinLockAcquire(&shared->mutex);
    for (const QuarantineEntry& entry : shared->quarantine) {
        if (entry.key == key) until = entry.until;
    }
    SpinLockRelease(&shared->mutex);
    return until != 0 && GetCurrentTimestamp() < until;
}

void quarantine_index(const MirrorKey& culprit)
{
    MirrorKey key = culprit;
    key.device = MirrorDevice::best;
    constexpr int64 first_seconds = 30;
    constexpr int longest_shift = 7;  // about an hour
    const TimestampTz now = GetCurrentTimestamp();
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    QuarantineEntry* entry = quarantine_entry(shared, key);
    if (!(entry->key == key)) {
        entry->key = key;
        entry->deaths = 0;
    }
    const int64 seconds = first_seconds << Min(entry->deaths, longest_shift);
    entry->deaths++;
    entry->until = now + seconds * USECS_PER_SEC;
    shared->any_quarantine = true;
    SpinLockRelease(&shared->mutex);
    ereport(LOG, (errmsg("pgwarp: index with relation file %u is quarantined to the CPU device for " INT64_FORMAT
                         " seconds, because its searches made the engine die twice",
                         key.relation, seconds)));
}

}  // namespace pgwarp
