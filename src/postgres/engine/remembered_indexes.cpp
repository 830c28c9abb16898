#include "postgres/engine/remembered_indexes.h"

#include "postgres/engine/loader_worker.h"
#include "postgres/engine/shared_slot.h"

extern "C" {
#include "access/xact.h"
}

#include <algorithm>

namespace pgwarp
{

namespace
{

constexpr int most_attempts = 2;  // a load that ends the engine must not go on for ever
constexpr int most_databases = 8;
constexpr int64 use_interval_us = 10 * USECS_PER_SEC;  // between notes of one backend about one index

// The caller holds the mutex.
RememberedIndex* find_entry(SharedSlot* shared, Oid database, Oid index)
{
    for (RememberedIndex& entry : shared->remembered) {
        if (entry.database == database && entry.index == index) return &entry;
    }
    return nullptr;
}

RememberedIndex* oldest_entry(SharedSlot* shared)
{
    RememberedIndex* oldest = &shared->remembered[0];
    for (RememberedIndex& entry : shared->remembered) {
        if (entry.database == InvalidOid) return &entry;
        if (entry.used_at < oldest->used_at) oldest = &entry;
    }
    return oldest;
}

// Copy what is remembered and may be tried, those used last first. Each copied has had one more attempt if `count`.
int copy_entries(RememberedIndex* entries, bool count)
{
    SharedSlot* shared = shared_slot();
    int copied = 0;
    SpinLockAcquire(&shared->mutex);
    for (RememberedIndex& entry : shared->remembered) {
        if (entry.database == InvalidOid) continue;
        if (count && entry.attempts++ >= most_attempts) {
            entry.database = InvalidOid;
            continue;
        }
        entries[copied++] = entry;
    }
    SpinLockRelease(&shared->mutex);
    std::sort(entries, entries + copied,
              [](const RememberedIndex& a, const RememberedIndex& b) { return a.used_at > b.used_at; });
    return copied;
}

}  // namespace

void remember_index(Relation index)
{
    const TimestampTz now = GetCurrentTimestamp();
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    RememberedIndex* entry = find_entry(shared, MyDatabaseId, RelationGetRelid(index));
    const bool known = entry != nullptr;
    if (!known) entry = oldest_entry(shared);
    // At a start of the engine nobody has used it: what it was used last stays.
    const TimestampTz used_at = known ? entry->used_at : now;
    *entry = {MyDatabaseId, RelationGetRelid(index), 0, used_at};
    SpinLockRelease(&shared->mutex);
}

void note_index_use(Relation index)
{
    struct Note {
        Oid index;
        TimestampTz at;
    };
    static Note notes[16];
    const Oid oid = RelationGetRelid(index);
    const TimestampTz now = GetCurrentStatementStartTimestamp();
    Note* note = &notes[oid % lengthof(notes)];
    if (note->index == oid && now - note->at < use_interval_us) return;
    *note = {oid, now};
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    if (RememberedIndex* entry = find_entry(shared, MyDatabaseId, oid)) entry->used_at = Max(entry->used_at, now);
    SpinLockRelease(&shared->mutex);
}

void forget_index(Oid database, Oid index)
{
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    if (RememberedIndex* entry = find_entry(shared, database, index)) entry->database = InvalidOid;
    SpinLockRelease(&shared->mutex);
}

void start_remembered_loads()
{
    RememberedIndex entries[remembered_capacity];
    const int count = copy_entries(entries, true);
    Oid databases[most_databases];
    int started = 0;
    for (int i = 0; i < count && started < most_databases; ++i) {
        const Oid database = entries[i].database;
        if (std::find(databases, databases + started, database) != databases + started) continue;
        if (!start_remembered_loader(database)) return;
        databases[started++] = database;
    }
}

int remembered_indexes(Oid database, Oid* indexes)
{
    RememberedIndex entries[remembered_capacity];
    const int count = copy_entries(entries, false);
    int found = 0;
    for (int i = 0; i < count; ++i) {
        if (entries[i].database == database) indexes[found++] = entries[i].index;
    }
    return found;
}

}  // namespace pgwarp
