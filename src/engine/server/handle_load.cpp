// Handlers of loads: one connection becomes the loader, arrays come in pieces, delta rows and tombstones at any time.
#include "engine/server/handlers.h"
#include "engine/server/log.h"
#include "methods/arrays.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t little_load = std::size_t{64} << 10;  // bytes that an I/O thread copies itself
constexpr std::size_t max_staged = std::size_t{1} << 27;  // positions of dead delta entries that a connection may stage

std::uint64_t stored_bytes(const std::vector<ArrayShape>& arrays)
{
    std::uint64_t bytes = 0;
    for (const ArrayShape& array : arrays) bytes += array.bytes();
    return bytes;
}

std::shared_ptr<Mirror> make_mirror_on(Engine& engine, const LoadBeginMessage& message, MirrorDevice on)
{
    const LoadBeginRequest& load = message.request;
    bool on_cuda = false;
    const MethodFactory& method = engine.device.require_method(load.shape, on, on_cuda);
    return std::make_shared<Mirror>(load.key, load.shape, load.options, load.rows, message.arrays, method, on_cuda);
}

// Whether the index is so small that the CPU is the better device. Of lists, the words count as values.
bool is_small(const Engine& engine, const LoadBeginMessage& message)
{
    const LoadBeginRequest& load = message.request;
    std::uint64_t values = load.rows * load.shape.dimensions;
    if (is_list(load.shape.element)) {
        const ArrayShape* words = find_array(message.arrays, array_list_words);
        values = words != nullptr ? words->rows : 0;
    }
    return values <= engine.options.cpu_values;
}

// The CPU serves an index when the GPU has no room for it, even after idle mirrors were evicted.
std::shared_ptr<Mirror> make_mirror(Engine& engine, const LoadBeginMessage& message)
{
    const MirrorKey& key = message.request.key;
    if (is_small(engine, message)) return make_mirror_on(engine, message, MirrorDevice::cpu);
    const bool may_fit = key.device == MirrorDevice::best && !engine.residency.is_too_large(key);
    try {
        // Idle mirrors make room: the device calls the relief that Engine has set.
        if (may_fit) return make_mirror_on(engine, message, MirrorDevice::best);
    } catch (const std::bad_alloc&) {
        if (message.request.role == LoadRole::ahead) {
            // An earlier generation on the GPU will make room when this one is loaded for searches: no refusal.
            if (!engine.residency.has_other_generation_on_gpu(key))
                engine.residency.note_too_large(key, stored_bytes(message.arrays), engine.gpu_room());
            throw;
        }
        try {
            if (engine.residency.drop_other_generations(key))
                return make_mirror_on(engine, message, MirrorDevice::best);
        } catch (const std::bad_alloc&) {
            // The dropped generations took too little memory.
        }
        log_line(LogLevel::log, "the GPU has no room for an index: the CPU serves it");
    }
    if (may_fit) engine.residency.note_too_large(key, stored_bytes(message.arrays), engine.gpu_room());
    return make_mirror_on(engine, message, MirrorDevice::cpu);
}

void reply_grant(IoThread& thread, const ConnectionPtr& connection, std::uint64_t request_id, LoadGrant grant)
{
    LoadBeginReply reply{};
    reply.grant = grant;
    thread.reply(connection, request_id, MessageType::reply, as_bytes(reply));
}

std::shared_ptr<Mirror> or_refuse(IoThread& thread, const Request& request, std::shared_ptr<Mirror> mirror,
                                  const char* why)
{
    if (!mirror)
        thread.reply_error(request.connection, request.header.request_id, make_error(ErrorCode::unknown_mirror, why));
    return mirror;
}

// The mirror that the sender is loading. Null: an error was replied, because it loads none, or none any more.
std::shared_ptr<Mirror> find_load(IoThread& thread, const Request& request, const MirrorKey& key)
{
    return or_refuse(thread, request, thread.engine().residency.find_load(key, request.connection->id()),
                     "the sender is not loading this index");
}

// The mirror that the sender loads or has joined loading. Null: an error was replied.
std::shared_ptr<Mirror> find_joined(IoThread& thread, const Request& request, const MirrorKey& key)
{
    return or_refuse(thread, request, thread.engine().residency.find_joined(key, request.connection->id()),
                     "the sender is not loading this index");
}

// The mirror to add to, resident or being loaded. Null: an error was replied.
std::shared_ptr<Mirror> find_for_addition(IoThread& thread, const Request& request, const MirrorKey& key)
{
    return or_refuse(thread, request, thread.engine().residency.find_any(key), "the index is not resident");
}

// The same for entries of a log. The first entries that a mirror gets set the start of the log. Only the loader knows
// the start of a log whose first entries are gone; other senders may begin a log at position 0 only.
std::shared_ptr<Mirror> find_for_entries(IoThread& thread, const Request& request, const LoadDeltaRequest& delta)
{
    Residency& residency = thread.engine().residency;
    auto mirror = residency.find_load(delta.key, request.connection->id());
    if (mirror) return mirror;
    mirror = residency.find_resident(delta.key);
    if (mirror && delta.first > 0 && !mirror->snapshot()->logs[delta.log].known) mirror.reset();
    return or_refuse(thread, request, std::move(mirror), "the index is not resident");
}

// When a GPU runs out of memory during a load: abandons the load, and the loader begins again, for the CPU.
void give_up_gpu(Engine& engine, const std::shared_ptr<Mirror>& mirror)
{
    if (!mirror->on_cuda()) return;
    engine.residency.note_too_large(mirror->key(), mirror->stored_bytes(), engine.gpu_room(mirror.get()));
    engine.residency.abandon_load(mirror->key(), mirror);
    throw UnknownMirror("the device has no room for the index");
}

// Readies a complete mirror, and one that is loaded ahead also makes a part. A load that fails is abandoned.
void finish_load(Engine& engine, const std::shared_ptr<Mirror>& mirror, ThreadPool& pool, bool ahead)
{
    try {
        const BusyPoll::Work work(engine.busy_poll, pool.threads());
        mirror->finish_load(pool);
        if (ahead && mirror->wants_part_ahead()) engine.add_part(*mirror, pool);
    } catch (const std::bad_alloc&) {
        give_up_gpu(engine, mirror);
        engine.residency.abandon_load(mirror->key(), mirror);
        throw;
    } catch (...) {
        engine.residency.abandon_load(mirror->key(), mirror);
        throw;
    }
}

// Makes the empty mirror on another thread (it can be large) and tells the loader to go on.
void begin_granted(IoThread& thread, const Request& request, LoadBeginMessage message)
{
    Engine& engine = thread.engine();
    const ConnectionPtr connection = request.connection;
    const MirrorKey key = message.request.key;
    thread.run_exclusive_on(
        engine.loads, request,
        [&engine, connection_id = connection->id(), key, message = std::move(message)] {
            try {
                auto mirror = make_mirror(engine, message);
                engine.residency.resize_load(key, mirror->host_bytes());
                if (!engine.residency.set_load(key, connection_id, std::move(mirror))) throw Cancelled();
            } catch (...) {
                engine.residency.abandon_load(key, nullptr);
                throw;
            }
        },
        [&thread, connection, id = request.header.request_id] {
            reply_grant(thread, connection, id, LoadGrant::granted);
        });
}

}  // namespace

void handle_load_begin(IoThread& thread, const Request& request)
{
    LoadBeginMessage message = decode_load_begin(request.payload);
    const std::uint64_t bytes = stored_bytes(message.arrays);
    const MirrorKey& key = message.request.key;
    const Ticket ticket = thread.new_ticket();
    Residency& residency = thread.engine().residency;
    // A mirror on a GPU takes host memory for the addresses of its rows only; resize_load() corrects that.
    const bool to_gpu = thread.engine().device.on_cuda() && key.device == MirrorDevice::best &&
                        !residency.is_too_large(key) && !is_small(thread.engine(), message);
    const std::uint64_t host_bytes = to_gpu ? message.request.rows * sizeof(Tid) : bytes;
    const LoadRole role = message.request.role;
    if (role == LoadRole::join) {
        const bool joined = residency.join_load(key, request.connection->id());
        return reply_grant(thread, request.connection, request.header.request_id,
                           joined ? LoadGrant::granted : LoadGrant::absent);
    }
    switch (residency.begin_load(key, request.connection->id(), role, bytes, host_bytes, ticket)) {
        case Residency::State::absent:
            if (role == LoadRole::load || role == LoadRole::ahead)
                return begin_granted(thread, request, std::move(message));
            return reply_grant(thread, request.connection, request.header.request_id,
                               role == LoadRole::claim ? LoadGrant::granted : LoadGrant::absent);
        case Residency::State::resident:
            return reply_grant(thread, request.connection, request.header.request_id, LoadGrant::already_loaded);
        case Residency::State::loading:
            break;
    }
    const auto deadline = request.received + std::chrono::milliseconds(message.request.wait_ms);
    if (Clock::now() < deadline) return thread.park(request, ticket, deadline);
    residency.forget(key, ticket);
    reply_grant(thread, request.connection, request.header.request_id, LoadGrant::still_loading);
}

void handle_load_chunk(IoThread& thread, const Request& request)
{
    const LoadChunkMessage message = decode_load_chunk(request.payload);
    const LoadChunkRequest& chunk = message.request;
    const auto mirror = find_joined(thread, request, chunk.key);
    if (!mirror) return;
    Bytes data = message.data;
    std::shared_ptr<BufferMapping> mapping;
    if (chunk.buffer != no_buffer) {
        const auto part =
            thread.engine().buffers.part(chunk.buffer, request.connection->id(), chunk.buffer_offset, chunk.length);
        mapping = part.mapping;
        data = part.bytes;
    }
    Engine& engine = thread.engine();
    thread.run_exclusive(request, data.size() <= little_load, [mirror, mapping, data, chunk, &engine] {
        try {
            mirror->write(chunk.array, chunk.offset, data);
        } catch (const std::bad_alloc&) {
            give_up_gpu(engine, mirror);
            throw;
        }
        return std::vector<std::byte>();
    });
}

// Does the work of the end of a load while the earlier generation still answers: publishes nothing, and takes few
// threads from searches. Called again after delta rows have come, it makes a part of them before any search meets them.
void handle_load_prepare(IoThread& thread, const Request& request)
{
    const auto mirror = find_load(thread, request, decode_mirror(request.payload));
    if (!mirror) return;
    mirror->check_complete();
    Engine& engine = thread.engine();
    thread.run_exclusive_on(
        engine.loads, request, [&engine, mirror] { finish_load(engine, mirror, *engine.ahead_pool, true); },
        [&thread, connection = request.connection, id = request.header.request_id] {
            thread.acknowledge(connection, id);
        });
}

void handle_load_end(IoThread& thread, const Request& request)
{
    const MirrorKey key = decode_mirror(request.payload);
    const auto mirror = find_load(thread, request, key);
    if (!mirror) return;
    mirror->check_complete();
    Engine& engine = thread.engine();
    // All bytes have come: the load goes on without its connection.
    engine.residency.detach_load(key, request.connection->id());
    thread.run_exclusive_on(
        engine.loads, request,
        [&engine, mirror, key] {
            finish_load(engine, mirror, engine.search_pool, false);
            engine.residency.publish(key, mirror);
        },
        [&thread, connection = request.connection, id = request.header.request_id] {
            thread.acknowledge(connection, id);
        });
}

void handle_load_delta(IoThread& thread, const Request& request)
{
    const LoadDeltaMessage message = decode_load_delta(request.payload);
    const LoadDeltaRequest& delta = message.request;
    const auto mirror = find_for_entries(thread, request, delta);
    if (!mirror) return;
    thread.engine().residency.make_room(request.payload.size(), mirror.get());
    thread.run_exclusive(request, request.payload.size() <= little_load, [mirror, delta, message] {
        mirror->add_delta(delta.log, delta.first, message.tids, message.rows);
        return std::vector<std::byte>();
    });
}

namespace
{

// Adds a piece to the tombstones that the connection stages for one index and version; another one begins anew.
void stage_tombstones(StagedTombstones& staged, const Mirror& mirror, const LoadTombstonesMessage& message)
{
    const LoadTombstonesRequest& piece = message.request;
    if (!staged.active || !(staged.key == piece.key) || staged.version != piece.version) {
        staged = StagedTombstones{true, piece.key, piece.version, {}};
    }
    if (piece.source == 0) {
        const std::uint64_t words = (mirror.rows() + 63) / 64;
        if (piece.first > words || message.values.size() > words - piece.first)
            throw BadRequest("tombstones past the last row");
        if (message.values.empty()) return;
        staged.values.rows.resize(words);
        for (std::size_t i = 0; i < message.values.size(); ++i)
            staged.values.rows[piece.first + i] |= message.values[i];
    } else {
        auto& entries = staged.values.log_entries[piece.source - 1];
        if (entries.size() + message.values.size() > max_staged) throw BadRequest("too many tombstones");
        entries.insert(entries.end(), message.values.begin(), message.values.end());
    }
}

}  // namespace

void handle_load_tombstones(IoThread& thread, const Request& request)
{
    const LoadTombstonesMessage message = decode_load_tombstones(request.payload);
    const auto mirror = find_for_addition(thread, request, message.request.key);
    if (!mirror) return;
    StagedTombstones& staged = request.connection->staged;
    stage_tombstones(staged, *mirror, message);
    if (message.request.final == 0) return thread.acknowledge(request.connection, request.header.request_id);
    const auto complete = std::make_shared<StagedTombstones>(std::move(staged));
    staged = StagedTombstones{};
    thread.run_exclusive(request, complete->values.bytes() <= little_load, [mirror, complete] {
        mirror->add_tombstones(complete->version, complete->values);
        return std::vector<std::byte>();
    });
}

}  // namespace pgwarp
