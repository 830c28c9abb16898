// The process: the lock of the one engine, parent, signals, limits, and the socket.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "engine/server/file_descriptor.h"

namespace pgwarp
{

// The lock that one engine holds. It is taken before anything else; its holder owns the path of the socket.
class ProcessLock
{
public:
    // Waits at most `patience` for a predecessor that is still draining. Nothing when another engine keeps the lock:
    // the caller then exits. Throws std::system_error when the file can't be made.
    static std::optional<ProcessLock> acquire(const std::string& path, std::chrono::milliseconds patience);

private:
    explicit ProcessLock(FileDescriptor file) : file_(std::move(file)) {}
    FileDescriptor file_;
};

// Switches core dumps off, allows as many descriptors as the hard limit does, ignores SIGPIPE.
void set_process_limits();

// Whether the executable of this process is no longer at its path: an upgrade has put another file there.
bool executable_was_replaced();

// Asks for SIGTERM at the death of the parent. False when the parent is dead already. 0 = no parent.
bool follow_parent(int parent_pid);

// Returns a descriptor that becomes readable at SIGTERM and SIGINT; it must outlive the signals. Handlers write to it:
// signals are not blocked for a signalfd, since libraries start threads before main(), and a signal that one thread
// doesn't block ends the process.
FileDescriptor make_signal_descriptor();

// Binds and listens on a socket of mode 0600, after removing any file at the path. Only for the holder of the lock.
FileDescriptor listen_on(const std::string& path);

// Whether the user of a peer is served: only the own user is.
bool peer_is_allowed(uid_t peer, uid_t own);

// The user at the other end of a connection; nothing when the kernel doesn't say.
std::optional<ucred> peer_credentials(int fd);

}  // namespace pgwarp
