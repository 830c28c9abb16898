#include "engine/server/process.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

namespace pgwarp
{

namespace
{

[[noreturn]] void fail(const std::string& what)
{
    throw std::system_error(errno, std::generic_category(), what);
}

std::atomic<int> signal_event{-1};
static_assert(std::atomic<int>::is_always_lock_free);

// Wakes the main loop; write() is safe in a signal handler.
void note_signal(int)
{
    const int saved = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(signal_event, &one, sizeof(one));
    errno = saved;
}

}  // namespace

std::optional<ProcessLock> ProcessLock::acquire(const std::string& path, std::chrono::milliseconds patience)
{
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file) fail("cannot open lock file \"" + path + "\"");
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) fail("cannot lock \"" + path + "\"");
        if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return ProcessLock(std::move(file));
}

void set_process_limits()
{
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
    }
    std::signal(SIGPIPE, SIG_IGN);
}

bool executable_was_replaced()
{
    constexpr const char* self = "/proc/self/exe";
    std::error_code error;
    const std::filesystem::path path = std::filesystem::read_symlink(self, error);
    if (error) return false;
    // The link leads to the running file even when its name is gone.
    return !std::filesystem::equivalent(path, self, error);
}

bool follow_parent(int parent_pid)
{
    if (parent_pid == 0) return true;
    if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) fail("cannot follow the parent process");
    // The parent may have died before the kernel was asked.
    return ::getppid() == parent_pid;
}

FileDescriptor make_signal_descriptor()
{
    FileDescriptor descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!descriptor) fail("cannot make an event descriptor");
    signal_event = descriptor.get();
    struct sigaction action {
    };
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    if (::sigaction(SIGTERM, &action, nullptr) != 0 || ::sigaction(SIGINT, &action, nullptr) != 0)
        fail("cannot handle signals");
    return descriptor;
}

FileDescriptor listen_on(const std::string& path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        throw std::system_error(ENAMETOOLONG, std::generic_category(), "socket path \"" + path + "\"");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!listener) fail("cannot make a socket");
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("cannot remove \"" + path + "\"");
    // The file of a socket gets the mode of its descriptor at bind: at no moment is the path open to others.
    if (::fchmod(listener.get(), 0600) != 0) fail("cannot set the socket's mode");
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        fail("cannot bind \"" + path + "\"");
    }
    if (::chmod(path.c_str(), 0600) != 0) fail("cannot set the mode of \"" + path + "\"");
    if (::listen(listener.get(), SOMAXCONN) != 0) fail("cannot listen on \"" + path + "\"");
    return listener;
}

bool peer_is_allowed(uid_t peer, uid_t own)
{
    return peer == own;
}

std::optional<ucred> peer_credentials(int fd)
{
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 || size != sizeof(credentials)) {
        return std::nullopt;
    }
    return credentials;
}

}  // namespace pgwarp
