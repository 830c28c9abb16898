// A small blocking client of the engine, for tests and benchmarks.
#pragma once

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/server/file_descriptor.h"
#include "protocol/messages.h"

namespace pgwarp
{

struct ClientReply {
    MessageType type;
    std::vector<std::byte> payload;
    FileDescriptor descriptor;

    template <class T>
    T as() const
    {
        if (payload.size() < sizeof(T)) throw std::runtime_error("reply too short");
        T value;
        std::memcpy(static_cast<void*>(&value), payload.data(), sizeof(T));
        return value;
    }
    template <class T>
    std::vector<T> array_at(std::size_t offset, std::size_t count) const
    {
        if (payload.size() < offset + count * sizeof(T)) throw std::runtime_error("reply too short");
        std::vector<T> values(count);
        if (count > 0) std::memcpy(static_cast<void*>(values.data()), payload.data() + offset, count * sizeof(T));
        return values;
    }
};

// A refusal by the engine.
struct EngineError : std::runtime_error {
    explicit EngineError(const ErrorReply& reply) : std::runtime_error(reply.message), code(reply.code) {}
    ErrorCode code;
};

struct ConnectionLost : std::runtime_error {
    ConnectionLost() : std::runtime_error("the engine closed the connection") {}
};

class EngineClient
{
public:
    explicit EngineClient(const std::string& path, std::uint64_t incarnation = 1, bool greet = true)
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
        socket_ = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
            throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
        }
        if (greet) hello(incarnation);
    }

    HelloReply hello(std::uint64_t incarnation)
    {
        HelloRequest request{};
        request.version = protocol_version;
        request.process_id = ::getpid();
        request.incarnation = incarnation;
        std::strncpy(request.build, build_name, sizeof(request.build) - 1);
        return call(MessageType::hello, bytes_of(request)).as<HelloReply>();
    }

    template <class T>
    static std::span<const std::byte> bytes_of(const T& value)
    {
        return std::as_bytes(std::span(&value, 1));
    }
    template <class T>
    static std::span<const std::byte> bytes_of_all(const std::vector<T>& values)
    {
        return std::as_bytes(std::span(values));
    }

    // Whether the following requests want replies.
    void want_replies(bool wants) { wants_replies_ = wants; }
    // Sends a request without waiting; returns its id.
    std::uint64_t send(MessageType type, std::span<const std::byte> front = {}, std::span<const std::byte> middle = {},
                       std::span<const std::byte> rest = {})
    {
        MessageHeader header{};
        header.magic = protocol_magic;
        header.type = static_cast<std::uint16_t>(type);
        header.payload_bytes = static_cast<std::uint32_t>(front.size() + middle.size() + rest.size());
        header.request_id = wants_replies_ ? ++last_id_ : unanswered;
        iovec pieces[4] = {{&header, sizeof(header)},
                           {const_cast<std::byte*>(front.data()), front.size()},
                           {const_cast<std::byte*>(middle.data()), middle.size()},
                           {const_cast<std::byte*>(rest.data()), rest.size()}};
        msghdr message{};
        message.msg_iov = pieces;
        message.msg_iovlen = 4;
        const std::uint64_t id = header.request_id;
        std::size_t left = sizeof(header) + header.payload_bytes;
        while (true) {
            const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR) continue;
            if (sent < 0) throw ConnectionLost();
            left -= static_cast<std::size_t>(sent);
            if (left == 0) return id;
            skip(message, static_cast<std::size_t>(sent));
        }
    }

    void send_raw(std::span<const std::byte> bytes)
    {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent < 0) throw ConnectionLost();
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
        }
    }

    // The next frame, of any type.
    ClientReply receive(std::uint64_t* request_id = nullptr)
    {
        MessageHeader header{};
        ClientReply reply{};
        receive_exactly({reinterpret_cast<std::byte*>(&header), sizeof(header)}, &reply.descriptor);
        if (header.magic != protocol_magic) throw std::runtime_error("not a pgwarp reply");
        poll_hint_ns_ = header.poll_hint_ns;
        reply.type = static_cast<MessageType>(header.type);
        reply.payload.resize(header.payload_bytes);
        receive_exactly(reply.payload, &reply.descriptor);
        if (request_id != nullptr) *request_id = header.request_id;
        return reply;
    }

    // The polling hint of the last received frame.
    std::uint32_t poll_hint_ns() const { return poll_hint_ns_; }

    // The final reply to a request; errors are thrown.
    ClientReply wait(std::uint64_t id, const std::function<void(const ProgressReply&)>& progress = {})
    {
        while (true) {
            std::uint64_t got = 0;
            ClientReply reply = receive(&got);
            if (got != id) throw std::runtime_error("reply to another request");
            if (reply.type == MessageType::progress) {
                if (progress) progress(reply.as<ProgressReply>());
                continue;
            }
            if (reply.type == MessageType::error) throw EngineError(reply.as<ErrorReply>());
            return reply;
        }
    }

    ClientReply call(MessageType type, std::span<const std::byte> front = {}, std::span<const std::byte> middle = {},
                     std::span<const std::byte> rest = {})
    {
        return wait(send(type, front, middle, rest));
    }

    // Whether the engine closes the connection within the time; bytes that it still sends are discarded.
    bool is_closed_within(int milliseconds)
    {
        std::array<char, 4096> sink;
        while (true) {
            pollfd watched{socket_.get(), POLLIN, 0};
            if (::poll(&watched, 1, milliseconds) <= 0) return false;
            const ssize_t got = ::recv(socket_.get(), sink.data(), sink.size(), 0);
            if (got <= 0) return true;
        }
    }

    void close() { socket_.reset(); }
    int fd() const { return socket_.get(); }

private:
    static void skip(msghdr& message, std::size_t bytes)
    {
        for (std::size_t i = 0; i < message.msg_iovlen && bytes > 0; ++i) {
            iovec& piece = message.msg_iov[i];
            const std::size_t gone = std::min(bytes, piece.iov_len);
            piece.iov_base = static_cast<char*>(piece.iov_base) + gone;
            piece.iov_len -= gone;
            bytes -= gone;
        }
    }

    void receive_exactly(std::span<std::byte> target, FileDescriptor* descriptor)
    {
        while (!target.empty()) {
            iovec piece{target.data(), target.size()};
            alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
            msghdr message{};
            message.msg_iov = &piece;
            message.msg_iovlen = 1;
            message.msg_control = control;
            message.msg_controllen = sizeof(control);
            const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) throw ConnectionLost();
            for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
                if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(head), sizeof(fd));
                *descriptor = FileDescriptor(fd);
            }
            target = target.subspan(static_cast<std::size_t>(got));
        }
    }

    FileDescriptor socket_;
    std::uint64_t last_id_ = 0;
    std::uint32_t poll_hint_ns_ = 0;
    bool wants_replies_ = true;
};

}  // namespace pgwarp
