// The shared memory of backends and the launcher: process ids, the server's incarnation, notes about indexes.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "datatype/timestamp.h"
#include "storage/spin.h"
}

#include "protocol/messages.h"

namespace pgwarp
{

// An index whose searches ended the engine twice (quarantine.h).
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
    TimestampTz no_small_merge_before;  // before this time no worker is started for a small merge
};

inline constexpr int remembered_capacity = 128;

// An index that has been loaded (remembered_indexes.h).
struct RememberedIndex {
    Oid database;  // InvalidOid = a free entry
    Oid index;
    int32 attempts;  // to load it at the engine's start, since it was last loaded
    TimestampTz used_at;
};

inline constexpr int delta_cost_capacity = 64;

// The cost of an index's delta logs in a search, measured last (delta_cost.h).
struct DeltaCostNote {
    Oid database;
    Oid index;
    uint64 generation;
    uint64 entries;  // of the delta logs, when the cost was measured
    float cost;      // as a share of a search's time without them
};

struct DeltaCostNotes {
    DeltaCostNote notes[delta_cost_capacity];
    int next;  // position to overwrite when the index has no note
};

inline constexpr int delta_progress_capacity = 16;

// The ends of an index's logs in its mirror, including entries on their way to it (delta_progress.h).
struct DeltaProgressNote {
    MirrorKey key;
    uint64 ends[delta_log_count];
    uint32 unread;  // rows sent at their insertion since a search last read this note
};

struct DeltaProgressNotes {
    DeltaProgressNote notes[delta_progress_capacity];
    int count;
    int next;  // position to overwrite when all are in use
};

// The mutex protects every write to a field that changes.
struct SharedSlot {
    slock_t mutex;
    uint64 incarnation;  // random, made with the shared memory
    pid_t launcher_pid;  // 0 = none
    pid_t engine_pid;    // 0 = none
    pid_t retrying_pid;  // process whose turn it is to repeat a request that ended with the engine; 0 = none
    uint32 engine_starts;
    int32 engine_exit;  // wait status of the last engine that ended by itself
    bool any_quarantine;
    pid_t merging_pid;            // of the worker that merges; 0 = none
    TimestampTz no_merge_before;  // before this time no merge worker is started
    Oid left_database;            // of the table skipped last, because its merge failed or is not wanted
    Oid left_table;
    TimestampTz left_until;     // before this time no merge worker is started for that table
    TimestampTz registered_at;  // when a backend last registered a launcher that has not started yet; 0 = never
    QuarantineEntry quarantine[quarantine_capacity];
    RememberedIndex remembered[remembered_capacity];
    DeltaCostNotes delta_costs;
    DeltaProgressNotes delta_progress;
    MergeNote merges[merge_note_capacity];
    int next_merge;  // position in `merges` to overwrite next
};

// Bytes of shared memory for the slot and the incarnation.
Size shared_memory_bytes();
// Attaches to the slot, creating it if need be. Never null: where the server has no shared memory left, the session
// gets a private slot. The caller must hold no lightweight lock.
SharedSlot* shared_slot();
// Whether the slot is private to this process.
bool has_private_slot();
// Forgets an attachment to shared memory that no longer exists.
void detach_shared_slot();

// Whether a launcher runs, or with a private slot whether an engine answers.
bool launcher_is_running();
// Number of engines that launchers have started since the shared memory was made.
uint32 engine_start_count();

// The server's incarnation: a random number, made with the shared memory.
uint64 server_incarnation();

// Takes the turn to repeat a request. False when another session has it.
bool claim_retry_turn();
// Gives up the turn; no effect if it is another session's.
void release_retry_turn();

}  // namespace pgwarp
