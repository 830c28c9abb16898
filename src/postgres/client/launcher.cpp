#include "postgres/client/launcher.h"

#include "postgres/client/engine_process.h"
#include "postgres/client/remembered_indexes.h"
#include "postgres/client/shared_slot.h"
#include "postgres/client/worker.h"
#include "postgres/settings.h"

extern "C" {
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/tcopprot.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PGDLLEXPORT void pgwarp_launcher_main(Datum argument);
}

namespace pgwarp
{

namespace
{

constexpr int64 registration_patience_us = 5 * USECS_PER_SEC;
constexpr long first_delay_ms = 50;
constexpr long longest_delay_ms = 5000;  // shorter than pgwarp.engine_timeout: a waiting session sees the next engine
constexpr int64 healthy_us = 10 * USECS_PER_SEC;  // an engine that lived so long is restarted without delay
constexpr long longest_wait_ms = 60000;
constexpr long ending_wait_ms = 100;                       // between checks whether an ending engine is gone
constexpr int64 other_engine_rest_us = 5 * USECS_PER_SEC;  // between checks whether another launcher's engine has ended

shmem_request_hook_type previous_request_hook = nullptr;
shmem_startup_hook_type previous_startup_hook = nullptr;

void request_shared_memory()
{
    if (previous_request_hook != nullptr) previous_request_hook();
    RequestAddinShmemSpace(shared_memory_bytes());
}

void make_shared_memory()
{
    if (previous_startup_hook != nullptr) previous_startup_hook();
    // After a crash the postmaster calls this again, with new shared memory.
    detach_shared_slot();
    shared_slot();
}

BackgroundWorker describe_launcher()
{
    return describe_worker("pgwarp launcher", "pgwarp_launcher_main");
}

// Whether this backend shall register the launcher.
bool claim_registration(SharedSlot* slot)
{
    const TimestampTz now = GetCurrentTimestamp();
    SpinLockAcquire(&slot->mutex);
    const bool claim =
        slot->launcher_pid == 0 && (slot->registered_at == 0 || now - slot->registered_at > registration_patience_us);
    if (claim) slot->registered_at = now;
    SpinLockRelease(&slot->mutex);
    return claim;
}

void forget_registration(SharedSlot* slot)
{
    SpinLockAcquire(&slot->mutex);
    slot->registered_at = 0;
    SpinLockRelease(&slot->mutex);
}

// Become the launcher; false when there is one.
bool claim_launcher(SharedSlot* slot)
{
    SpinLockAcquire(&slot->mutex);
    const bool claim = slot->launcher_pid == 0;
    if (claim) slot->launcher_pid = MyProcPid;
    slot->registered_at = 0;
    SpinLockRelease(&slot->mutex);
    return claim;
}

void set_engine_pid(pid_t pid)
{
    SharedSlot* slot = shared_slot();
    SpinLockAcquire(&slot->mutex);
    slot->engine_pid = pid;
    if (pid != 0) slot->engine_starts++;
    SpinLockRelease(&slot->mutex);
}

EngineProcess engine = {0, -1, {0}, 0};

// Free the slot for the next launcher, and stop the engine.
void leave_launcher(int, Datum)
{
    stop_engine_process(&engine);
    SharedSlot* slot = shared_slot();
    SpinLockAcquire(&slot->mutex);
    if (slot->launcher_pid == MyProcPid) slot->launcher_pid = 0;
    slot->engine_pid = 0;
    SpinLockRelease(&slot->mutex);
}

// Wait for log output of the engine, a signal or the end of the delay. Returns whether the log pipe is readable.
bool wait_for_event(long timeout_ms)
{
    const int events =
        WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | WL_TIMEOUT | (engine.log_pipe >= 0 ? WL_SOCKET_READABLE : 0);
    const int happened = WaitLatchOrSocket(MyLatch, events, engine.log_pipe >= 0 ? engine.log_pipe : PGINVALID_SOCKET,
                                           timeout_ms, PG_WAIT_EXTENSION);
    if (happened & WL_LATCH_SET) {
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
    }
    return (happened & WL_SOCKET_READABLE) != 0;
}

// When to start the engine next: at once after a long life, with growing delays after short ones.
struct BackOff {
    long delay_ms;  // after the next short life
    TimestampTz start_at;
};

// Reload the configuration; restart the engine when it was started with other settings.
void reload()
{
    EngineArguments before;
    collect_engine_arguments(&before);
    ProcessConfigFile(PGC_SIGHUP);
    EngineArguments after;
    collect_engine_arguments(&after);
    if (memcmp(&before, &after, sizeof(before)) != 0 && engine.pid != 0) {
        ereport(LOG, (errmsg("pgwarp: restarting the engine with new settings")));
        if (stop_engine_process(&engine)) set_engine_pid(0);
    }
}

// How long to wait for the next event: the start of an engine, the end of one, or its log output.
long wait_of(const BackOff* back_off, TimestampTz now)
{
    if (engine.pid == 0) return Max(1L, static_cast<long>((back_off->start_at - now) / 1000));
    return engine.log_pipe < 0 ? ending_wait_ms : longest_wait_ms;
}

// Forward the engine's log; return whether the engine has ended or is ending.
bool engine_ends(bool readable)
{
    if (engine.pid == 0) return false;
    return engine.log_pipe < 0 || (readable && !forward_engine_log(&engine));
}

void note_end(BackOff* back_off, TimestampTz started)
{
    const TimestampTz now = GetCurrentTimestamp();
    if (now - started > healthy_us) back_off->delay_ms = 0;
    back_off->start_at = now + back_off->delay_ms * 1000;
    back_off->delay_ms = Min(Max(back_off->delay_ms * 2, first_delay_ms), longest_delay_ms);
}

// Keep an engine running until told to stop.
void supervise()
{
    BackOff back_off = {0, 0};
    while (!ShutdownRequestPending) {
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            reload();
            if (engine.pid == 0) back_off.start_at = 0;
        }
        const TimestampTz now = GetCurrentTimestamp();
        if (engine.pid == 0 && now >= back_off.start_at) {
            if (start_engine_process(&engine)) {
                set_engine_pid(engine.pid);
                if (setting_load_at_start) start_remembered_loads();
            } else {
                note_end(&back_off, now);
            }
        }
        if (!engine_ends(wait_for_event(wait_of(&back_off, now)))) continue;
        const TimestampTz started = engine.started_at;
        const EngineEnd end = report_engine_exit(&engine);
        if (end == EngineEnd::not_yet) continue;
        set_engine_pid(0);
        note_end(&back_off, started);
        if (end != EngineEnd::other_serves) continue;
        // Another launcher, of another build or of a session without shared memory, has an engine. This launcher starts
        // its own when that one ends. Without shared memory this launcher ends: sessions start one when they need it.
        if (has_private_slot()) return;
        back_off.start_at = GetCurrentTimestamp() + other_engine_rest_us;
    }
}

}  // namespace

void init_launcher()
{
    if (!process_shared_preload_libraries_in_progress) return;
    previous_request_hook = shmem_request_hook;
    shmem_request_hook = request_shared_memory;
    previous_startup_hook = shmem_startup_hook;
    shmem_startup_hook = make_shared_memory;
    BackgroundWorker worker = describe_launcher();
    RegisterBackgroundWorker(&worker);
}

bool ensure_launcher()
{
    if (!IsUnderPostmaster) return false;
    if (launcher_is_running()) return true;
    SharedSlot* slot = shared_slot();
    if (!claim_registration(slot)) return true;
    BackgroundWorker worker = describe_launcher();
    if (RegisterDynamicBackgroundWorker(&worker, nullptr)) return true;
    forget_registration(slot);
    return false;
}

}  // namespace pgwarp

void pgwarp_launcher_main(Datum)
{
    using namespace pgwarp;
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    BackgroundWorkerUnblockSignals();
    if (!claim_launcher(shared_slot())) proc_exit(0);
    before_shmem_exit(leave_launcher, static_cast<Datum>(0));
    // It connects to no database, but the connection makes the launcher visible in pg_stat_activity.
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    supervise();
    proc_exit(0);
}
