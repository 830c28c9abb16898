#include "postgres/client/remembered_indexes.h"

#include "postgres/client/loader_worker.h"
#include "postgres/client/shared_slot.h"

extern "C" {
#include "access/xact.h"
}

#include <algorithm>

namespace pgwarp
{

namespace
{

constexpr int most_attempts = 2;  // a load that ends the engine must not be repeated for ever
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

// Copy the remembered indexes, most recently used first.
int copy_entries(RememberedIndex* entries)
{
    SharedSlot* shared = shared_slot();
    int copied = 0;
    SpinLockAcquire(&shared->mutex);
    for (RememberedIndex& entry : shared->remembered) {
        if (entry.database != InvalidOid) entries[copied++] = entry;
    }
    SpinLockRelease(&shared->mutex);
    std::sort(entries, entries + copied,
              [](const RememberedIndex& a, const RememberedIndex& b) { return a.used_at > b.used_at; });
    return copied;
}

// Count an attempt to load the database's remembered indexes, and forget those with too many attempts. Returns false
// when none is left.
bool count_attempt(Oid database)
{
    SharedSlot* shared = shared_slot();
    bool any = false;
    SpinLockAcquire(&shared->mutex);
    for (RememberedIndex& entry : shared->remembered) {
        if (entry.database != database) continue;
        if (entry.attempts++ >= most_attempts) {
            entry.database = InvalidOid;
        } else {
            any = true;
        }
    }
    SpinLockRelease(&shared->mutex);
    return any;
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
    // A load at the engine's start is no use of the index: the time of its last use stays.
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
    const int count = copy_entries(entries);
    Oid databases[most_databases];
    int known = 0;
    for (int i = 0; i < count && known < most_databases; ++i) {
        const Oid database = entries[i].database;
        if (std::find(databases, databases + known, database) != databases + known) continue;
        databases[known++] = database;
        if (count_attempt(database) && !start_remembered_loader(database)) return;
    }
}

Oid* remembered_indexes(Oid database, int* count)
{
    RememberedIndex entries[remembered_capacity];
    const int known = copy_entries(entries);
    auto* indexes = static_cast<Oid*>(palloc(sizeof(Oid) * remembered_capacity));
    *count = 0;
    for (int i = 0; i < known; ++i) {
        if (entries[i].database == database) indexes[(*count)++] = entries[i].index;
    }
    return indexes;
}

}  // namespace pgwarp
