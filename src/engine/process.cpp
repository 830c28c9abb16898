#include "engine/process.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
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

bool follow_parent(int parent_pid)
{
    if (parent_pid == 0) return true;
    if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) fail("cannot follow the parent process");
    // The parent may have died before the kernel was asked.
    return ::getppid() == parent_pid;
}

FileDescriptor make_signal_descriptor()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (const int error = ::pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0) {
        throw std::system_error(error, std::generic_category(), "cannot block signals");
    }
    FileDescriptor descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
    if (!descriptor) fail("cannot make a signal descriptor");
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
    // The mode of a socket is that of its descriptor at bind: at no moment is the path open to others.
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
