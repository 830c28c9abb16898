#include "postgres/client/load_team.h"

#include "postgres/client/loader_worker.h"
#include "postgres/settings.h"

#include <unistd.h>

extern "C" {
#include "postmaster/bgworker_internals.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/wait_event.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 bytes_of_a_helper = 32U << 20;   // for fewer, starting a process costs more time than it saves
constexpr uint64 bytes_worth_sharing = 8U << 20;  // of one array
constexpr int most_by_default = 6;  // processes; more are limited by the bandwidth of memory and of the bus
constexpr int slots_left = 2;       // of max_worker_processes, for other workers
constexpr long look_ms = 1000;      // a waiting process checks its condition this often

}  // namespace

struct LoadTeam {
    slock_t mutex;
    ConditionVariable changed;  // an array was opened or finished, the team was disbanded, or a helper failed
    bool disbanded;
    bool failed;
    uint32 array;
    uint64 total;  // bytes of the open array; 0 = none is open
    uint64 taken;
    uint64 finished;
};

namespace
{

dsm_segment* segment = nullptr;  // of the team that this process belongs to
bool holds_piece = false;

// Disband the team when the leader leaves, with or without an error.
void leave_as_leader(dsm_segment*, Datum argument)
{
    auto* team = reinterpret_cast<LoadTeam*>(DatumGetPointer(argument));
    SpinLockAcquire(&team->mutex);
    team->disbanded = true;
    SpinLockRelease(&team->mutex);
    ConditionVariableBroadcast(&team->changed);
    segment = nullptr;
    holds_piece = false;
}

void leave_as_helper(dsm_segment*, Datum argument)
{
    auto* team = reinterpret_cast<LoadTeam*>(DatumGetPointer(argument));
    segment = nullptr;
    if (!holds_piece) return;
    SpinLockAcquire(&team->mutex);
    team->failed = true;
    SpinLockRelease(&team->mutex);
    ConditionVariableBroadcast(&team->changed);
}

// How many processes may load one index.
int allowed_processes()
{
    if (setting_load_workers > 0) return setting_load_workers;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int by_cores = static_cast<int>(Max(cores, 1L) / 2);
    return Min(Min(by_cores, most_by_default), max_worker_processes - slots_left);
}

int helpers_for(const Directory& directory)
{
    uint64 bytes = 0;
    for (uint32 i = 0; i < directory.array_count; ++i) {
        if (team_may_load(directory.arrays[i])) bytes += directory.arrays[i].shape.bytes();
    }
    const uint64 useful = bytes / bytes_of_a_helper;
    return static_cast<int>(Min(useful, static_cast<uint64>(Max(allowed_processes() - 1, 0))));
}

}  // namespace

bool team_may_load(const StoredArray& array)
{
    return array.shape.bytes() >= bytes_worth_sharing;
}

LoadTeam* gather_load_team(Relation index, const Directory& directory)
{
    const int helpers = helpers_for(directory);
    if (helpers == 0 || segment != nullptr) return nullptr;
    dsm_segment* made = dsm_create(sizeof(LoadTeam), DSM_CREATE_NULL_IF_MAXSEGMENTS);
    if (made == nullptr) return nullptr;
    auto* team = static_cast<LoadTeam*>(dsm_segment_address(made));
    memset(static_cast<void*>(team), 0, sizeof(*team));
    SpinLockInit(&team->mutex);
    ConditionVariableInit(&team->changed);
    // Registering the callback may raise an error, which detaches the segment.
    on_dsm_detach(made, leave_as_leader, PointerGetDatum(team));
    segment = made;
    int started = 0;
    while (started < helpers && start_load_helper(index, directory.generation, dsm_segment_handle(made))) ++started;
    ereport(DEBUG1, (errmsg("pgwarp: loading index \"%s\" with %d helpers", RelationGetRelationName(index), started)));
    if (started > 0) return team;
    leave_load_team();
    return nullptr;
}

void leave_load_team()
{
    if (segment != nullptr) dsm_detach(segment);
}

void open_array(LoadTeam* team, uint32 array, uint64 bytes)
{
    SpinLockAcquire(&team->mutex);
    team->array = array;
    team->total = bytes;
    team->taken = 0;
    team->finished = 0;
    SpinLockRelease(&team->mutex);
    ConditionVariableBroadcast(&team->changed);
}

bool wait_for_pieces(LoadTeam* team)
{
    bool failed = false;
    for (bool done = false; !done;) {
        SpinLockAcquire(&team->mutex);
        failed = team->failed;
        done = failed || team->finished == team->total;
        SpinLockRelease(&team->mutex);
        if (!done) ConditionVariableTimedSleep(&team->changed, look_ms, PG_WAIT_EXTENSION);
    }
    ConditionVariableCancelSleep();
    return !failed;
}

LoadTeam* join_load_team(dsm_handle handle)
{
    dsm_segment* attached = dsm_attach(handle);
    if (attached == nullptr) return nullptr;
    auto* team = static_cast<LoadTeam*>(dsm_segment_address(attached));
    on_dsm_detach(attached, leave_as_helper, PointerGetDatum(team));
    segment = attached;
    return team;
}

bool wait_for_piece(LoadTeam* team, uint64 most, LoadPiece* piece)
{
    bool taken = false;
    for (bool disbanded = false; !taken && !disbanded;) {
        taken = take_piece(team, most, piece);
        if (taken) break;
        SpinLockAcquire(&team->mutex);
        disbanded = team->disbanded;
        SpinLockRelease(&team->mutex);
        if (!disbanded) ConditionVariableTimedSleep(&team->changed, look_ms, PG_WAIT_EXTENSION);
    }
    ConditionVariableCancelSleep();
    return taken;
}

bool take_piece(LoadTeam* team, uint64 most, LoadPiece* piece)
{
    SpinLockAcquire(&team->mutex);
    const bool open = !team->disbanded && !team->failed && team->taken < team->total;
    if (open) {
        *piece = {team->array, team->taken, Min(most, team->total - team->taken)};
        team->taken += piece->length;
        holds_piece = true;
    }
    SpinLockRelease(&team->mutex);
    return open;
}

void finish_piece(LoadTeam* team, const LoadPiece& piece)
{
    SpinLockAcquire(&team->mutex);
    team->finished += piece.length;
    const bool all = team->finished == team->total;
    SpinLockRelease(&team->mutex);
    holds_piece = false;
    if (all) ConditionVariableBroadcast(&team->changed);
}

}  // namespace pgwarp
