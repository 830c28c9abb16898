#include "engine/server/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace pgwarp
{

Connection::Connection(FileDescriptor socket, std::uint64_t id) : socket_(std::move(socket)), id_(id) {}

Connection::ReadState Connection::read()
{
    const std::span<std::byte> space = reader_.space();
    while (true) {
        const ssize_t got = ::recv(fd(), space.data(), space.size(), MSG_DONTWAIT);
        if (got > 0) {
            reader_.filled(static_cast<std::size_t>(got));
            return ReadState::data;
        }
        if (got == 0) return ReadState::ended;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? ReadState::nothing : ReadState::ended;
    }
}

ssize_t Connection::write(std::span<const std::span<const std::byte>> pieces, int descriptor)
{
    iovec vectors[3];
    msghdr message{};
    message.msg_iov = vectors;
    for (const auto& piece : pieces) {
        if (piece.empty()) continue;
        vectors[message.msg_iovlen++] = {const_cast<std::byte*>(piece.data()), piece.size()};
    }
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (descriptor >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        cmsghdr* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
    }
    while (true) {
        const ssize_t sent = ::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) return sent;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    }
}

bool Connection::send(MessageType type, std::uint64_t request_id, std::uint32_t poll_hint_ns,
                      std::span<const std::byte> front, std::span<const std::byte> rest,
                      std::shared_ptr<BufferMapping> keep)
{
    MessageHeader header{};
    header.magic = protocol_magic;
    header.type = static_cast<std::uint16_t>(type);
    header.payload_bytes = static_cast<std::uint32_t>(front.size() + rest.size());
    header.poll_hint_ns = poll_hint_ns;
    header.request_id = request_id;
    const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&header, 1)), front, rest};
    std::size_t skip = 0;
    if (segments_.empty()) {
        const ssize_t sent = write(pieces, keep ? keep->fd() : -1);
        if (sent < 0) return false;
        skip = static_cast<std::size_t>(sent);
        if (skip > 0) keep.reset();
    }
    if (skip == sizeof(header) + front.size() + rest.size()) return true;
    try {
        keep_unsent(pieces, skip, std::move(keep));
    } catch (...) {
        // The peer waits for the rest of a frame that has begun: no other frame can follow.
        if (skip > 0) return false;
        throw;
    }
    return true;
}

// Keeps the bytes of the pieces behind the first `skip`.
void Connection::keep_unsent(std::span<const std::span<const std::byte>> pieces, std::size_t skip,
                             std::shared_ptr<BufferMapping> descriptor)
{
    Segment segment;
    segment.descriptor = std::move(descriptor);
    for (const auto& piece : pieces) {
        const std::size_t gone = std::min(skip, piece.size());
        skip -= gone;
        segment.bytes.insert(segment.bytes.end(), piece.begin() + static_cast<std::ptrdiff_t>(gone), piece.end());
    }
    segments_.push_back(std::move(segment));
    unsent_ += segments_.back().bytes.size();
}

bool Connection::flush()
{
    while (!segments_.empty()) {
        Segment& segment = segments_.front();
        const std::span<const std::byte> rest = std::span(segment.bytes).subspan(segment.sent);
        const ssize_t sent = write({&rest, 1}, segment.descriptor ? segment.descriptor->fd() : -1);
        if (sent < 0) return false;
        if (sent == 0) return true;
        segment.descriptor.reset();
        segment.sent += static_cast<std::size_t>(sent);
        unsent_ -= static_cast<std::size_t>(sent);
        if (segment.sent == segment.bytes.size()) segments_.pop_front();
    }
    return true;
}

}  // namespace pgwarp
