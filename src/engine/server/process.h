// What makes the process a well-behaved single engine: its lock, its parent, signals, limits.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "engine/server/file_descriptor.h"

namespace pgwarp
{

// The lock that one engine holds. It is taken before anything else; whoever holds it owns the socket's path.
class ProcessLock
{
public:
    // Waits at most `patience` for a predecessor that is still draining. Nothing when another engine keeps it: the
    // caller then ends, because an engine serves. Throws std::system_error when the file can't be made.
    static std::optional<ProcessLock> acquire(const std::string& path, std::chrono::milliseconds patience);

private:
    explicit ProcessLock(FileDescriptor file) : file_(std::move(file)) {}
    FileDescriptor file_;
};

// No core dumps, as many descriptors as allowed, SIGPIPE ignored.
void set_process_limits();

// Whether the file that this process runs from is not at its path any more: an upgrade put another there.
bool executable_was_replaced();

// Asks for SIGTERM at the parent's death and checks that it is still there. False when it is not. 0 = no parent.
bool follow_parent(int parent_pid);

// Returns a descriptor that becomes readable at SIGTERM and SIGINT. By handlers, not by blocking: libraries start
// threads before main(), and one that doesn't block a signal would die of it for all. The descriptor outlives the
// signals.
FileDescriptor make_signal_descriptor();

// Binds and listens on a socket of mode 0600; removes what lies at the path. Only for the holder of the lock.
FileDescriptor listen_on(const std::string& path);

// Only processes of our own user are served.
bool peer_is_allowed(uid_t peer, uid_t own);

// The user at the other end of a connection; nothing when the kernel doesn't say.
std::optional<ucred> peer_credentials(int fd);

}  // namespace pgwarp
