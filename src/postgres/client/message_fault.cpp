#include "postgres/client/message_fault.h"

#include "postgres/client/shared_slot.h"

#include <unistd.h>
#include <climits>
#include <csignal>

namespace pgwarp
{

#ifdef PGWARP_FAULTS

static int setting_fault_message = 0;
static bool setting_fault_session = false;
static int setting_fault_turn = 0;

void message_fault_point(const char* where, uint16 message_type)
{
    static int passed = 0;
    ++passed;
    elog(DEBUG2, "message point %d: %s, message type %u", passed, where, message_type);
    if (setting_fault_message != passed) return;
    const pid_t target = setting_fault_session ? getpid() : shared_slot()->engine_pid;
    elog(LOG, "killed %d at message point %d: %s, message type %u", static_cast<int>(target), passed, where,
         message_type);
    if (target > 0) kill(target, SIGKILL);
}

void turn_fault_point()
{
    static int turns = 0;
    if (setting_fault_turn != ++turns) return;
    const pid_t engine = shared_slot()->engine_pid;
    elog(LOG, "killed %d at turn %d to repeat a request", static_cast<int>(engine), turns);
    if (engine > 0) kill(engine, SIGKILL);
}

void define_message_fault_settings()
{
    constexpr int flags = GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE;
    DefineCustomIntVariable("pgwarp.fault_message", "Message point at which a test build kills the engine.", nullptr,
                            &setting_fault_message, 0, 0, INT_MAX, PGC_SUSET, flags, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.fault_turn", "Turn to repeat a request at which a test build kills the engine.",
                            nullptr, &setting_fault_turn, 0, 0, INT_MAX, PGC_SUSET, flags, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable("pgwarp.fault_session", "Kills the session instead of the engine.", nullptr,
                             &setting_fault_session, false, PGC_SUSET, flags, nullptr, nullptr, nullptr);
}

#else

void message_fault_point(const char*, uint16) {}
void turn_fault_point() {}
void define_message_fault_settings() {}

#endif

}  // namespace pgwarp
