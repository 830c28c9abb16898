#include "postgres/client/shared_slot.h"

#include "postgres/client/engine_socket.h"
#include "postgres/storage/fault_point.h"
#include "postgres/storage/page.h"

extern "C" {
#include "common/hashfn.h"
#include "miscadmin.h"
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"
}

namespace pgwarp
{

namespace
{

// Shared by all builds: sessions of different builds refer to the same server.
struct SharedIncarnation {
    uint64 value;
};

constexpr char incarnation_name[] = "pgwarp incarnation";

// The slot belongs to this build. After an upgrade, sessions of the old build keep using their old slot.
constexpr Size longest_name = 64;
void name_slot(char* name)
{
    snprintf(name, longest_name, "pgwarp %s slot of %zu bytes", build_name, sizeof(SharedSlot));
}

SharedSlot* slot = nullptr;
SharedSlot private_slot;  // used when no shared memory is left; belongs to this process alone

void init_slot(void* memory)
{
    auto* made = static_cast<SharedSlot*>(memory);
    memset(static_cast<void*>(made), 0, sizeof(*made));
    SpinLockInit(&made->mutex);
}

void init_incarnation(void* memory)
{
    static_cast<SharedIncarnation*>(memory)->value = random_number64();
}

// Return the memory of this name, creating it if need be. Raises ERRCODE_OUT_OF_MEMORY or
// ERRCODE_INSUFFICIENT_RESOURCES.
void* attach_named(const char* name, Size bytes, void (*init)(void*))
{
    bool found;
    // After the server's start the main segment has little room left.
#if PG_VERSION_NUM >= 190000
    const auto call = [](void* memory, void* init) { reinterpret_cast<void (*)(void*)>(init)(memory); };
    if (IsUnderPostmaster) return GetNamedDSMSegment(name, bytes, call, &found, reinterpret_cast<void*>(init));
#elif PG_VERSION_NUM >= 170000
    if (IsUnderPostmaster) return GetNamedDSMSegment(name, bytes, init, &found);
#endif
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    void* memory = ShmemInitStruct(name, bytes, &found);
    if (!found) init(memory);
    LWLockRelease(AddinShmemInitLock);
    return memory;
}

SharedSlot* attach_slot()
{
    char name[longest_name];
    name_slot(name);
    fault_shared_memory();
    const auto* incarnation =
        static_cast<SharedIncarnation*>(attach_named(incarnation_name, sizeof(SharedIncarnation), init_incarnation));
    auto* attached = static_cast<SharedSlot*>(attach_named(name, sizeof(SharedSlot), init_slot));
    attached->incarnation = incarnation->value;
    return attached;
}

// Without shared memory, sessions derive the incarnation from values that all of them know. Only a crash leaves the
// number unchanged; the engine ends with the launcher then.
SharedSlot* use_private_slot()
{
    init_slot(&private_slot);
    private_slot.incarnation = hash_bytes_extended(reinterpret_cast<const unsigned char*>(&PgStartTime),
                                                   sizeof(PgStartTime), static_cast<uint64>(PostmasterPid));
    ereport(LOG, (errmsg("pgwarp: there is no shared memory left for this session"),
                  errdetail("Indexes that are quarantined, merges and loads are not told to other sessions."),
                  errhint("Add pgwarp to shared_preload_libraries, or restart the server.")));
    return &private_slot;
}

bool is_short_of_shared_memory(int code)
{
    return code == ERRCODE_OUT_OF_MEMORY || code == ERRCODE_INSUFFICIENT_RESOURCES;
}

SharedSlot* attach_or_do_without()
{
    MemoryContext outer = CurrentMemoryContext;
    SharedSlot* volatile attached = nullptr;
    PG_TRY();
    {
        attached = attach_slot();
    }
    PG_CATCH();
    {
        // Callers hold no lightweight lock except those of the lock manager's tables: any other held lock was taken
        // here.
        LWLockReleaseAll();
        MemoryContextSwitchTo(outer);
        ErrorData* error = CopyErrorData();
        if (!is_short_of_shared_memory(error->sqlerrcode)) PG_RE_THROW();
        FlushErrorState();
        FreeErrorData(error);
    }
    PG_END_TRY();
    return attached != nullptr ? attached : use_private_slot();
}

}  // namespace

Size shared_memory_bytes()
{
    return MAXALIGN(sizeof(SharedSlot)) + MAXALIGN(sizeof(SharedIncarnation));
}

SharedSlot* shared_slot()
{
    if (slot == nullptr) slot = attach_or_do_without();
    return slot;
}

bool has_private_slot()
{
    return shared_slot() == &private_slot;
}

void detach_shared_slot()
{
    slot = nullptr;
}

bool launcher_is_running()
{
    SharedSlot* shared = shared_slot();
    // A private slot does not show other sessions' launchers, but their engine answers.
    if (has_private_slot()) return engine_answers();
    SpinLockAcquire(&shared->mutex);
    const bool running = shared->launcher_pid != 0;
    SpinLockRelease(&shared->mutex);
    return running;
}

uint32 engine_start_count()
{
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    const uint32 count = shared->engine_starts;
    SpinLockRelease(&shared->mutex);
    return count;
}

bool claim_retry_turn()
{
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    const bool claim = shared->retrying_pid == 0 || shared->retrying_pid == MyProcPid;
    if (claim) shared->retrying_pid = MyProcPid;
    SpinLockRelease(&shared->mutex);
    return claim;
}

void release_retry_turn()
{
    SharedSlot* shared = shared_slot();
    SpinLockAcquire(&shared->mutex);
    if (shared->retrying_pid == MyProcPid) shared->retrying_pid = 0;
    SpinLockRelease(&shared->mutex);
}

uint64 server_incarnation()
{
    return shared_slot()->incarnation;
}

}  // namespace pgwarp
