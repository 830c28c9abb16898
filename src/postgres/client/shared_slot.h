// The shared memory of backends and the launcher: processes, the server's incarnation, notes about indexes.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "datatype/timestamp.h"
#include "storage/spin.h"
}

#include "protocol/messages.h"

namespace pgwarp
{

struct QuarantineEntry {
    MirrorKey key;
    TimestampTz until;
    int32 deaths;
};

inline constexpr int quarantine_capacity = 64;
inline constexpr int merge_note_capacity = 16;

// An index that a worker has merged.
struct MergeNote {
    Oid database;
    Oid index;
    TimestampTz no_small_merge_before;  // that a worker is started for
};

inline constexpr int remembered_capacity = 128;

// An index that has been loaded (remembered_indexes.h).
struct RememberedIndex {
    Oid database;  // InvalidOid = a free entry
    Oid index;
    int32 attempts;  // to load it at a start of the engine, since it was last loaded
    TimestampTz used_at;
};

inline constexpr int delta_cost_capacity = 64;

// The cost of an index's delta logs in a search, measured last (delta_cost.h).
struct DeltaCostNote {
    Oid database;
    Oid index;
    uint64 generation;
    uint64 entries;  // of the delta logs, at that time
    float cost;      // of a search without them
};

struct DeltaCostNotes {
    DeltaCostNote notes[delta_cost_capacity];
    int next;  // to be overwritten, when there is none of its index
};

inline constexpr int delta_progress_capacity = 16;

// The ends of an index's logs in its mirror, or on their way to it (delta_progress.h).
struct DeltaProgressNote {
    MirrorKey key;
    uint64 ends[delta_log_count];
    uint32 unread;  // rows that were sent as they were inserted since a search last looked here
};

struct DeltaProgressNotes {
    DeltaProgressNote notes[delta_progress_capacity];
    int count;
    int next;  // to be overwritten when all are taken
};

struct SharedSlot {
    slock_t mutex;
    uint64 incarnation;  // random, made with the shared memory
    pid_t launcher_pid;  // 0 = none
    pid_t engine_pid;    // 0 = none
    pid_t retrying_pid;  // whose turn it is to repeat a request that ended with the engine; 0 = nobody's
    uint32 engine_starts;
    int32 engine_exit;  // wait status of the last engine that ended by itself
    bool any_quarantine;
    pid_t merging_pid;            // of the worker that merges; 0 = none
    TimestampTz no_merge_before;  // that a worker is started for
    Oid left_database;            // of the table that was last left alone: its merge failed, or isn't wanted
    Oid left_table;
    TimestampTz left_until;     // nor before this for that table
    TimestampTz registered_at;  // when a backend last asked for a launcher that hasn't come yet; 0 = nobody did
    QuarantineEntry quarantine[quarantine_capacity];
    RememberedIndex remembered[remembered_capacity];
    DeltaCostNotes delta_costs;
    DeltaProgressNotes delta_progress;
    MergeNote merges[merge_note_capacity];
    int next_merge;  // of these to be overwritten
};

// Bytes of shared memory for the slot and the incarnation.
Size shared_memory_bytes();
// Attaches to the slot, making it if need be. Never null: where the server has no shared memory left, the session gets
// a slot of its own. To be called without lightweight locks.
SharedSlot* shared_slot();
// Whether it is one of this process's own.
bool has_private_slot();
// Forgets an attachment to shared memory that is no more.
void detach_shared_slot();

bool launcher_is_running();
uint32 engine_start_count();

// The server's incarnation: random, made with shared memory.
uint64 server_incarnation();

// The turn to repeat a request. False when it is another session's.
bool claim_retry_turn();
void release_retry_turn();

}  // namespace pgwarp
