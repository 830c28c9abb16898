#include "postgres/client/engine_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

extern "C" {
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/pmsignal.h"
#include "storage/s_lock.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

namespace pgwarp
{

namespace
{

constexpr uint32 first_capacity = 64 * 1024;
constexpr long uninterruptible_patience_ms = 2000;
constexpr int pauses_between_looks = 4;

// Create the wait event set. It is kept across statements, because creating one takes several system calls. When an
// error is raised here, close_socket() can still close the socket.
void make_event_set(EngineSocket* socket)
{
#if PG_VERSION_NUM >= 170000
    socket->events = CreateWaitEventSet(nullptr, 3);
#else
    socket->events = CreateWaitEventSet(TopMemoryContext, 3);
#endif
    AddWaitEventToSet(socket->events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, nullptr);
    AddWaitEventToSet(socket->events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, nullptr, nullptr);
    socket->watched = WL_SOCKET_READABLE;
    socket->socket_event = AddWaitEventToSet(socket->events, socket->watched, socket->descriptor, nullptr, nullptr);
}

// Wait until the socket is ready; false when the deadline has passed. Interrupts are served meanwhile.
bool wait_for_socket(EngineSocket* socket, uint32 wanted, TimestampTz deadline)
{
    if (socket->watched != wanted) {
        ModifyWaitEvent(socket->events, socket->socket_event, wanted, nullptr);
        socket->watched = wanted;
    }
    // While interrupts are held off, cancel cannot end a wait for an engine that hangs: so such a wait gets a deadline.
    if (InterruptHoldoffCount > 0 && deadline == 0) {
        deadline = GetCurrentTimestamp() + uninterruptible_patience_ms * 1000;
    }
    for (;;) {
        long timeout = -1;
        if (deadline != 0) {
            timeout = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
            if (timeout <= 0) return false;
        }
        WaitEvent event;
        if (WaitEventSetWait(socket->events, timeout, &event, 1, PG_WAIT_EXTENSION) == 0) continue;
        if (event.events & WL_LATCH_SET) {
            ResetLatch(MyLatch);
            CHECK_FOR_INTERRUPTS();
        } else {
            return true;
        }
    }
}

// Rows are sent only to an engine of the server's own user.
bool peer_is_ours(int descriptor)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

// Make room for a frame of this many bytes.
void reserve_bytes(EngineSocket* socket, uint32 bytes)
{
    if (bytes <= socket->capacity) return;
    const uint32 capacity = Max(bytes, first_capacity);
    socket->received = socket->received == nullptr ? static_cast<char*>(MemoryContextAlloc(TopMemoryContext, capacity))
                                                   : static_cast<char*>(repalloc(socket->received, capacity));
    socket->capacity = capacity;
}

void close_passed_descriptor(EngineSocket* socket)
{
    const int descriptor = take_passed_descriptor(socket);
    if (descriptor >= 0) close(descriptor);
}

// Keep the file descriptor that may come with the bytes; a message carries at most one.
void keep_descriptor(EngineSocket* socket, msghdr* message)
{
    for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        close_passed_descriptor(socket);
        memcpy(&socket->passed_descriptor, CMSG_DATA(part), sizeof(socket->passed_descriptor));
    }
}

ssize_t receive_some(EngineSocket* socket, bool take_descriptor)
{
    char* const to = socket->received + socket->filled;
    const size_t room = socket->capacity - socket->filled;
    if (!take_descriptor) return recv(socket->descriptor, to, room, MSG_DONTWAIT);
    iovec vector = {to, room};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t count = recvmsg(socket->descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count > 0) keep_descriptor(socket, &message);
    return count;
}

int64 monotonic_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int64>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// Poll for bytes for the time that the last reply named, once. Returns the result of recv(); -1 with EAGAIN: the caller
// has to wait. Interrupts are served; the wait handles the latch and the postmaster's death.
ssize_t receive_awake(EngineSocket* socket, bool take_descriptor)
{
    const uint32 patience = socket->poll_hint_ns;
    socket->poll_hint_ns = 0;
    errno = EAGAIN;
    if (patience == 0) return -1;
    const int64 end = monotonic_ns() + patience;
    while (PostmasterIsAlive() && monotonic_ns() < end) {
        CHECK_FOR_INTERRUPTS();
        const ssize_t count = receive_some(socket, take_descriptor);
        if (count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return count;
        for (int i = 0; i < pauses_between_looks; ++i) SPIN_DELAY();
    }
    errno = EAGAIN;
    return -1;
}

// Receive until this many bytes are there.
bool receive_bytes(EngineSocket* socket, uint32 bytes, TimestampTz deadline, bool take_descriptor)
{
    reserve_bytes(socket, bytes);
    while (socket->filled < bytes) {
        ssize_t count = receive_awake(socket, take_descriptor);
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!wait_for_socket(socket, WL_SOCKET_READABLE, deadline)) return false;
            count = receive_some(socket, take_descriptor);
        }
        if (count > 0) {
            socket->filled += static_cast<uint32>(count);
        } else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            return false;
        }
    }
    return true;
}

// Whether the process may open the two descriptors that a connection takes: the socket's and the event set's.
bool has_descriptors_left()
{
    if (!AcquireExternalFD()) return false;
    const bool second = AcquireExternalFD();
    if (second) ReleaseExternalFD();
    ReleaseExternalFD();
    return second;
}

// Returns a socket that is connected to an engine of the server's own user; -1 with errno when there is none.
int connect_descriptor()
{
    const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    sockaddr_un address;
    memset(&address, 0, sizeof(address));
    address.sun_family = AF_UNIX;
    strlcpy(address.sun_path, socket_path, sizeof(address.sun_path));
    if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 && peer_is_ours(descriptor)) {
        return descriptor;
    }
    close(descriptor);
    errno = ECONNREFUSED;
    return -1;
}

}  // namespace

ConnectResult connect_socket(EngineSocket* socket)
{
    if (!has_descriptors_left()) return ConnectResult::no_descriptors;
    const int descriptor = connect_descriptor();
    if (descriptor < 0)
        return errno == EMFILE || errno == ENFILE ? ConnectResult::no_descriptors : ConnectResult::nobody;
    ReserveExternalFD();
    socket->descriptor = descriptor;
    socket->filled = socket->given = socket->poll_hint_ns = 0;
    PG_TRY();
    {
        make_event_set(socket);
    }
    PG_CATCH();
    {
        close_socket(socket);
        PG_RE_THROW();
    }
    PG_END_TRY();
    return ConnectResult::connected;
}

bool engine_answers()
{
    const int descriptor = connect_descriptor();
    if (descriptor >= 0) close(descriptor);
    return descriptor >= 0;
}

int take_passed_descriptor(EngineSocket* socket)
{
    const int descriptor = socket->passed_descriptor;
    socket->passed_descriptor = -1;
    return descriptor;
}

void close_socket(EngineSocket* socket)
{
    if (socket->events != nullptr) FreeWaitEventSet(socket->events);
    socket->events = nullptr;
    if (socket->descriptor != PGINVALID_SOCKET) {
        close(socket->descriptor);
        ReleaseExternalFD();
    }
    socket->descriptor = PGINVALID_SOCKET;
    close_passed_descriptor(socket);
    socket->filled = socket->given = socket->poll_hint_ns = 0;
}

SendResult send_frame(EngineSocket* socket, const MessageHeader& header, const RequestPiece* pieces, int piece_count)
{
    Assert(piece_count <= most_request_pieces);
    iovec vectors[1 + most_request_pieces];
    vectors[0] = {const_cast<MessageHeader*>(&header), sizeof(header)};
    for (int i = 0; i < piece_count; ++i) vectors[1 + i] = {const_cast<void*>(pieces[i].bytes), pieces[i].length};
    msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = vectors;
    message.msg_iovlen = static_cast<size_t>(1 + piece_count);
    bool any = false;
    while (message.msg_iovlen > 0) {
        ssize_t count = sendmsg(socket->descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) return any ? SendResult::lost : SendResult::nothing_sent;
            if (!wait_for_socket(socket, WL_SOCKET_WRITEABLE, 0)) return SendResult::lost;
            continue;
        }
        any = true;
        while (message.msg_iovlen > 0 && static_cast<size_t>(count) >= message.msg_iov->iov_len) {
            count -= static_cast<ssize_t>(message.msg_iov->iov_len);
            message.msg_iov++;
            message.msg_iovlen--;
        }
        if (message.msg_iovlen == 0) break;
        message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + count;
        message.msg_iov->iov_len -= static_cast<size_t>(count);
    }
    return SendResult::sent;
}

bool send_frame_at_once(EngineSocket* socket, const MessageHeader& header, const RequestPiece& piece)
{
    iovec vectors[2] = {{const_cast<MessageHeader*>(&header), sizeof(header)},
                        {const_cast<void*>(piece.bytes), piece.length}};
    msghdr message;
    memset(&message, 0, sizeof(message));
    message.msg_iov = vectors;
    message.msg_iovlen = 2;
    return sendmsg(socket->descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof(header) + piece.length);
}

bool receive_frame(EngineSocket* socket, MessageHeader* header, TimestampTz deadline, bool take_descriptor)
{
    if (socket->given > 0) {
        memmove(socket->received, socket->received + socket->given, socket->filled - socket->given);
        socket->filled -= socket->given;
        socket->given = 0;
    }
    if (!receive_bytes(socket, sizeof(MessageHeader), deadline, take_descriptor)) return false;
    memcpy(header, socket->received, sizeof(*header));
    // A peer that does not speak the protocol counts as a lost connection.
    if (header->magic != protocol_magic || header->payload_bytes > max_payload) return false;
    const uint32 bytes = static_cast<uint32>(sizeof(MessageHeader)) + header->payload_bytes;
    if (!receive_bytes(socket, bytes, deadline, take_descriptor)) return false;
    socket->given = bytes;
    socket->poll_hint_ns = Min(header->poll_hint_ns, longest_poll_hint_ns);
    return true;
}

void sleep_interruptibly(long milliseconds)
{
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

}  // namespace pgwarp
