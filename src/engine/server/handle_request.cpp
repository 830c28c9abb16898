// Dispatch of requests by type, and the handlers of greeting, status, release and transfer buffers.
#include <algorithm>
#include <cstring>

#include "engine/server/handlers.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_mirrors_listed = (max_payload - sizeof(StatusReply)) / sizeof(MirrorStatus);

void copy_text(char* target, std::size_t size, const std::string& text)
{
    std::memcpy(target, text.data(), std::min(text.size(), size - 1));
}

// Throws Malformed unless the greeting is the first request, and comes once.
void check_order(const Request& request)
{
    const bool hello = request.type() == MessageType::hello;
    if (!request.connection->greeted && !hello) throw Malformed("a request before the greeting");
    if (request.connection->greeted && hello) throw Malformed("a second greeting");
}

}  // namespace

void handle_request(IoThread& thread, const Request& request)
{
    check_order(request);
    if (thread.engine().draining()) {
        return thread.reply_error(request.connection, request.header.request_id,
                                  make_error(ErrorCode::shutting_down, "the engine is shutting down"));
    }
    switch (request.type()) {
        case MessageType::hello:
            return handle_hello(thread, request);
        case MessageType::search:
            return handle_search(thread, request);
        case MessageType::search_indexes:
            return handle_search_indexes(thread, request);
        case MessageType::load_begin:
            return handle_load_begin(thread, request);
        case MessageType::load_chunk:
            return handle_load_chunk(thread, request);
        case MessageType::load_end:
            return handle_load_end(thread, request);
        case MessageType::load_prepare:
            return handle_load_prepare(thread, request);
        case MessageType::load_delta:
            return handle_load_delta(thread, request);
        case MessageType::load_tombstones:
            return handle_load_tombstones(thread, request);
        case MessageType::load_tids:
            return handle_load_tids(thread, request);
        case MessageType::build_begin:
            return handle_build_begin(thread, request);
        case MessageType::build_rows:
            return handle_build_rows(thread, request);
        case MessageType::build_array:
            return handle_build_array(thread, request);
        case MessageType::build_run:
            return handle_build_run(thread, request);
        case MessageType::build_read:
            return handle_build_read(thread, request);
        case MessageType::build_end:
            return handle_build_end(thread, request);
        case MessageType::lease_buffer:
            return handle_lease_buffer(thread, request);
        case MessageType::return_buffer:
            return handle_return_buffer(thread, request);
        case MessageType::status:
            return handle_status(thread, request);
        case MessageType::release:
            return handle_release(thread, request);
        default:
            throw Malformed("unknown message type");
    }
}

void handle_hello(IoThread& thread, const Request& request)
{
    const HelloRequest hello = decode_hello(request.payload);
    Engine& engine = thread.engine();
    if (hello.version != protocol_version || std::strcmp(hello.build, build_name) != 0) {
        // A session from before an upgrade must not end the engine from after it.
        const bool replaced = engine.was_replaced.load()();
        thread.reply_error(
            request.connection, request.header.request_id,
            make_error(ErrorCode::other_version, "the engine is of another version of pgwarp", "Connect again."));
        if (replaced) engine.drain("another version of pgwarp was installed");
        return;
    }
    request.connection->greeted = true;
    request.connection->incarnation = hello.incarnation;
    engine.greet(hello.incarnation);
    HelloReply reply{};
    reply.version = protocol_version;
    reply.process_id = ::getpid();
    copy_text(reply.build, sizeof(reply.build), build_name);
    copy_text(reply.device, sizeof(reply.device), engine.device.description());
    thread.reply(request.connection, request.header.request_id, MessageType::reply, as_bytes(reply));
}

void handle_status(IoThread& thread, const Request& request)
{
    Engine& engine = thread.engine();
    std::vector<MirrorStatus> mirrors = engine.residency.status();
    if (mirrors.size() > most_mirrors_listed) mirrors.resize(most_mirrors_listed);
    StatusReply reply{};
    copy_text(reply.device, sizeof(reply.device), engine.device.description());
    reply.process_id = ::getpid();
    reply.mirror_count = static_cast<std::uint32_t>(mirrors.size());
    reply.host_memory_used = engine.residency.memory_used();
    reply.host_memory_allowed = engine.residency.memory_allowed();
    const std::vector<PgwarpDeviceMemory> devices = engine.device.memory();
    for (const PgwarpDeviceMemory& device : devices) {
        reply.memory_used += device.used;
        reply.memory_allowed += device.allowed;
    }
    if (devices.empty()) {
        reply.memory_used = reply.host_memory_used;
        reply.memory_allowed = reply.host_memory_allowed;
    }
    const auto uptime = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - engine.started);
    reply.uptime_ms = static_cast<std::uint64_t>(uptime.count());
    reply.connections = engine.connections.load();
    reply.builds = engine.builds.count();
    thread.reply(request.connection, request.header.request_id, MessageType::reply, as_bytes(reply),
                 std::as_bytes(std::span(mirrors)));
}

void handle_release(IoThread& thread, const Request& request)
{
    thread.engine().residency.release(decode_mirror(request.payload));
    thread.acknowledge(request.connection, request.header.request_id);
}

void handle_lease_buffer(IoThread& thread, const Request& request)
{
    const LeaseBufferRequest lease = decode_lease_buffer(request.payload);
    TransferBuffers& buffers = thread.engine().buffers;
    const Ticket ticket = thread.new_ticket();
    const auto granted = buffers.lease(lease.purpose, request.connection->id(), ticket);
    if (!granted && lease.wait_ms > 0 && !request.timed_out) {
        return thread.park(request, ticket, request.received + std::chrono::milliseconds(lease.wait_ms));
    }
    LeaseBufferReply reply{no_buffer, 0, 0};
    if (granted) {
        reply.buffer = granted->buffer;
        reply.bytes = transfer_buffer_bytes;
    } else {
        buffers.forget(ticket);
    }
    thread.reply(request.connection, request.header.request_id, MessageType::reply, as_bytes(reply), {},
                 granted ? granted->mapping : nullptr);
}

void handle_return_buffer(IoThread& thread, const Request& request)
{
    const ReturnBufferRequest given = decode_return_buffer(request.payload);
    if (!thread.engine().buffers.give_back(given.buffer, request.connection->id())) {
        throw BadRequest("transfer buffer that the sender doesn't hold");
    }
    thread.acknowledge(request.connection, request.header.request_id);
}

}  // namespace pgwarp
