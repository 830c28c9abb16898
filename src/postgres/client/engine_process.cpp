#include "postgres/client/engine_process.h"

#include "protocol/exit_codes.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

extern "C" {
#include "utils/timestamp.h"
}

namespace pgwarp
{

namespace
{

constexpr int stop_patience_ms = 5000;
constexpr int kill_patience_ms = 1000;

// Finds the engine beside this library. Returns false, and logs a warning, if it is not executable there.
bool engine_path(char* path)
{
    strlcpy(path, library_path(), MAXPGPATH);
    get_parent_directory(path);
    strlcat(path, "/pgwarp-engine", MAXPGPATH);
    if (access(path, X_OK) == 0) return true;
    ereport(WARNING, (errcode_for_file_access(), errmsg("could not execute \"%s\": %m", path),
                      errhint("Install pgwarp-engine beside the pgwarp library.")));
    return false;
}

// Close every descriptor from 3 up. Runs in the child between fork and exec: only async-signal-safe calls are allowed.
void close_descriptors()
{
    rlimit limit;
    const int most =
        getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < 1048576
            ? static_cast<int>(limit.rlim_cur)
            : 65536;
#if defined(__linux__) && defined(CLOSE_RANGE_UNSHARE)
    if (close_range(3, ~0U, 0) == 0) return;
#endif
    for (int fd = 3; fd < most; ++fd) close(fd);
}

void reset_signals()
{
    for (int signal_number = 1; signal_number < 65; ++signal_number) signal(signal_number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Make the kernel kill the engine rather than the server when memory runs out.
void raise_oom_score()
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    if (fd < 0) return;
    const ssize_t written = write(fd, "500", 3);
    (void)written;
    close(fd);
}

// Turn the forked child into the engine.
[[noreturn]] void become_engine(const char* path, char* const* arguments, int log_pipe, pid_t launcher)
{
    setsid();
    reset_signals();
    raise_oom_score();
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(log_pipe, STDERR_FILENO);
    close_descriptors();
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    if (getppid() != launcher) _exit(1);
    execv(path, arguments);
    _exit(127);
}

// Fork with signals blocked: the child must not run the server's signal handlers, which would change the launcher's
// shared state.
pid_t fork_engine(const char* path, char* const* arguments, int log_pipe)
{
    const pid_t launcher = getpid();
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0) become_engine(path, arguments, log_pipe, launcher);
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    if (pid < 0) ereport(WARNING, (errmsg("could not start pgwarp-engine: %m")));
    return pid;
}

// Log one line of the engine, "LEVEL: text".
void log_engine_line(const char* line)
{
    static const struct {
        const char* prefix;
        int level;
    } levels[] = {
        {"DEBUG: ", DEBUG1}, {"LOG: ", LOG}, {"WARNING: ", WARNING}, {"ERROR: ", WARNING}, {"FATAL: ", WARNING}};
    for (const auto& level : levels) {
        const size_t length = strlen(level.prefix);
        if (strncmp(line, level.prefix, length) == 0) {
            ereport(level.level, (errmsg("pgwarp-engine: %s", line + length)));
            return;
        }
    }
    ereport(LOG, (errmsg("pgwarp-engine: %s", line)));
}

}  // namespace

const char* library_path()
{
    Dl_info info;
    const bool found = dladdr(reinterpret_cast<void*>(&collect_engine_arguments), &info) != 0;
    return found && info.dli_fname != nullptr ? info.dli_fname : "";
}

void collect_engine_arguments(EngineArguments* arguments)
{
    static const char* const devices[] = {"auto", "cuda", "cpu"};
    memset(arguments, 0, sizeof(*arguments));
    strlcpy(arguments->device, devices[setting_device], sizeof(arguments->device));
    strlcpy(arguments->gpus, setting_gpus != nullptr ? setting_gpus : "", sizeof(arguments->gpus));
    snprintf(arguments->memory, sizeof(arguments->memory), "%lld",
             static_cast<long long>(setting_engine_memory_mb) << 20);
    snprintf(arguments->threads, sizeof(arguments->threads), "%d", setting_engine_threads);
}

bool start_engine_process(EngineProcess* engine)
{
    char path[MAXPGPATH];
    if (!engine_path(path)) return false;
    EngineArguments settings;
    collect_engine_arguments(&settings);
    char parent[16];
    snprintf(parent, sizeof(parent), "%d", static_cast<int>(getpid()));
    char* arguments[] = {path,
                         const_cast<char*>("--device"),
                         settings.device,
                         const_cast<char*>("--memory"),
                         settings.memory,
                         const_cast<char*>("--threads"),
                         settings.threads,
                         const_cast<char*>("--parent-pid"),
                         parent,
                         settings.gpus[0] != '\0' ? const_cast<char*>("--gpus") : nullptr,
                         settings.gpus,
                         nullptr};
    int ends[2];
    if (pipe(ends) != 0) {
        ereport(WARNING, (errcode_for_file_access(), errmsg("could not create a pipe for pgwarp-engine: %m")));
        return false;
    }
    const pid_t pid = fork_engine(path, arguments, ends[1]);
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    engine->pid = pid;
    engine->log_pipe = ends[0];
    engine->line_length = 0;
    engine->started_at = GetCurrentTimestamp();
    ereport(LOG, (errmsg("pgwarp: started pgwarp-engine with process id %d", static_cast<int>(pid))));
    return true;
}

bool forward_engine_log(EngineProcess* engine)
{
    char bytes[4096];
    for (;;) {
        const ssize_t count = read(engine->log_pipe, bytes, sizeof(bytes));
        if (count == 0) return false;
        if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        for (ssize_t i = 0; i < count; ++i) {
            const bool full = engine->line_length == static_cast<int>(sizeof(engine->line)) - 1;
            if (bytes[i] != '\n' && !full) {
                engine->line[engine->line_length++] = bytes[i];
                continue;
            }
            engine->line[engine->line_length] = '\0';
            engine->line_length = 0;
            log_engine_line(engine->line);
        }
    }
}

static void close_log_pipe(EngineProcess* engine)
{
    if (engine->log_pipe >= 0) close(engine->log_pipe);
    engine->log_pipe = -1;
}

static void forget_engine(EngineProcess* engine)
{
    close_log_pipe(engine);
    engine->pid = 0;
}

EngineEnd report_engine_exit(EngineProcess* engine)
{
    int status = 0;
    close_log_pipe(engine);
    const pid_t ended = waitpid(engine->pid, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) return EngineEnd::not_yet;
    if (WIFSIGNALED(status)) {
        ereport(WARNING, (errmsg("pgwarp-engine (process id %d) was terminated by signal %d",
                                 static_cast<int>(engine->pid), WTERMSIG(status)),
                          errhint("It is started again; sessions go on.")));
    } else {
        ereport(LOG, (errmsg("pgwarp-engine (process id %d) exited with code %d", static_cast<int>(engine->pid),
                             WEXITSTATUS(status))));
    }
    forget_engine(engine);
    const bool other_serves = WIFEXITED(status) && WEXITSTATUS(status) == exit_other_engine;
    return other_serves ? EngineEnd::other_serves : EngineEnd::ended;
}

bool stop_engine_process(EngineProcess* engine)
{
    if (engine->pid == 0) return true;
    kill(engine->pid, SIGTERM);
    for (int waited_ms = 0;; waited_ms += 10) {
        int status;
        const pid_t ended = waitpid(engine->pid, &status, WNOHANG);
        if (ended == engine->pid || (ended < 0 && errno != EINTR)) break;
        if (waited_ms == stop_patience_ms) kill(engine->pid, SIGKILL);
        if (waited_ms == stop_patience_ms + kill_patience_ms) {
            close_log_pipe(engine);
            return false;
        }
        pg_usleep(10000L);
    }
    forget_engine(engine);
    return true;
}

}  // namespace pgwarp
