// Handlers of builds: rows and arrays come in, the build runs, and its arrays are read.
#include <cstring>

#include "engine/server/handlers.h"
#include "methods/given_arrays.h"
#include "protocol/build_sample.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t little = std::size_t{64} << 10;  // bytes that an I/O thread copies itself
constexpr std::uint64_t max_inline_read = std::uint64_t{1} << 20;

// The rows of a message: inline, or in a transfer buffer that `mapping` keeps alive.
struct Rows {
    std::span<const Tid> tids;
    RowBlock block;
    Bytes bytes;
    std::shared_ptr<BufferMapping> mapping;
};

std::span<const Tid> as_tids(Bytes bytes)
{
    return {reinterpret_cast<const Tid*>(bytes.data()), bytes.size() / sizeof(Tid)};
}

Rows locate_rows(IoThread& thread, const Request& request, const BuildRowsMessage& message, const IndexShape& shape)
{
    const BuildRowsRequest& rows = message.request;
    RowBlock block = message.block;
    const std::uint64_t tid_bytes = std::uint64_t{rows.count} * sizeof(Tid);
    if (rows.buffer == no_buffer)
        return {as_tids(message.data.first(tid_bytes)), block, message.data.subspan(tid_bytes), nullptr};
    if (block.form.layout == RowLayout::dense && !is_list(shape.element)) block.width = shape.dimensions;
    // Dense rows without attributes need the alignment of floats only.
    const bool only_floats = block.form.layout == RowLayout::dense && block.form.attribute_count == 0;
    const std::size_t alignment = only_floats ? alignof(float) : alignof(std::uint64_t);
    if (rows.tids_offset % alignof(Tid) != 0 || rows.rows_offset % alignment != 0) throw BadRequest("rows not aligned");
    TransferBuffers& buffers = thread.engine().buffers;
    const std::uint64_t owner = request.connection->id();
    const auto tids = buffers.part(rows.buffer, owner, rows.tids_offset, tid_bytes);
    const auto part = buffers.part(rows.buffer, owner, rows.rows_offset, block.bytes());
    return {as_tids(tids.bytes), block, part.bytes, tids.mapping};
}

void reply_begun(IoThread& thread, const Request& request, const BuildBeginRequest& begin, const MethodFactory& method,
                 const MethodFactory* second)
{
    Builds& builds = thread.engine().builds;
    const BuildBeginReply reply{builds.begin(request.connection->id(), begin, method, second)};
    const BuildSample sample{builds.find(reply.token)->wanted_sample()};
    thread.reply(request.connection, request.header.request_id, MessageType::reply, as_bytes(reply), as_bytes(sample));
}

void reply_outcome(IoThread& thread, const ConnectionPtr& connection, std::uint64_t request_id,
                   const BuildOutcome& outcome)
{
    BuildRunReply reply{};
    reply.rows = outcome.rows;
    reply.calibration = outcome.calibration;
    reply.options = outcome.options;
    reply.array_count = static_cast<std::uint32_t>(outcome.arrays.size());
    thread.reply(connection, request_id, MessageType::reply, as_bytes(reply), std::as_bytes(std::span(outcome.arrays)));
}

}  // namespace

void handle_build_begin(IoThread& thread, const Request& request)
{
    const BuildBeginRequest begin = decode_build_begin(request.payload);
    bool on_cuda = false;
    if (begin.kind != BuildKind::whole) {
        // The CPU merges and calibrates even beside a GPU: a merge encodes the delta rows only, and a calibration
        // compares its sample no faster than rows arrive.
        const MethodFactory& method = thread.engine().device.require_method(begin.shape, MirrorDevice::cpu, on_cuda);
        if (maker_of(method, begin.kind) == nullptr) throw BadRequest("an index of this method knows no such build");
        return reply_begun(thread, request, begin, method, nullptr);
    }
    const MethodFactory& method = thread.engine().device.require_method(begin.shape, MirrorDevice::best, on_cuda);
    const MethodFactory* second =
        on_cuda ? &thread.engine().device.require_method(begin.shape, MirrorDevice::cpu, on_cuda) : nullptr;
    reply_begun(thread, request, begin, method, second);
}

void handle_build_rows(IoThread& thread, const Request& request)
{
    const BuildRowsMessage message = decode_build_rows(request.payload);
    const auto build = thread.engine().builds.find(message.request.token);
    const Rows rows = locate_rows(thread, request, message, build->shape());
    // Rows that stream are encoded, which takes much longer than a copy.
    const bool brief = rows.bytes.size() <= little && !build->streams();
    thread.run_exclusive(request, brief, [&builds = thread.engine().builds, build, rows] {
        std::vector<std::uint64_t> copy;
        builds.append(*build, rows.tids, safe_rows(rows.block, rows.bytes, copy));
        return std::vector<std::byte>();
    });
}

void handle_build_array(IoThread& thread, const Request& request)
{
    const BuildArrayMessage message = decode_build_array(request.payload);
    const auto build = thread.engine().builds.find_owned(message.request.token, request.connection->id());
    const bool brief = message.data.size() <= little && !is_named(message.request.shape, array_sample_of);
    thread.run_exclusive(request, brief, [&builds = thread.engine().builds, build, message] {
        builds.give(*build, message.request.shape, message.request.offset, message.data);
        return std::vector<std::byte>();
    });
}

void handle_build_run(IoThread& thread, const Request& request)
{
    Builds& builds = thread.engine().builds;
    const auto build = builds.find_owned(decode_build(request.payload).token, request.connection->id());
    const ConnectionPtr connection = request.connection;
    const std::uint64_t id = request.header.request_id;
    builds.start(
        build,
        [&thread, connection, id](const ProgressReply& progress) {
            thread.post([&thread, connection, id, progress] { thread.send_progress(connection, id, progress); });
        },
        [&thread, connection, id](const BuildOutcome& outcome) {
            thread.post([&thread, connection, id, outcome] { reply_outcome(thread, connection, id, outcome); });
        },
        [&thread, connection, id](const ErrorReply& error) {
            thread.post([&thread, connection, id, error] { thread.reply_error(connection, id, error); });
        });
}

void handle_build_read(IoThread& thread, const Request& request)
{
    const BuildReadRequest read = decode_build_read(request.payload);
    const auto build = thread.engine().builds.find(read.token);
    if (read.buffer == no_buffer) {
        if (read.length > max_inline_read) throw BadRequest("more than a reply holds");
        return thread.run_exclusive(request, read.length <= little, [build, read] {
            std::vector<std::byte> data(read.length);
            build->read(read.array, read.offset, data);
            return data;
        });
    }
    const auto part =
        thread.engine().buffers.part(read.buffer, request.connection->id(), read.buffer_offset, read.length);
    thread.run_exclusive(request, read.length <= little, [build, read, part] {
        build->read(read.array, read.offset, part.bytes);
        return std::vector<std::byte>();
    });
}

void handle_build_end(IoThread& thread, const Request& request)
{
    thread.engine().builds.end(decode_build(request.payload).token, request.connection->id());
    thread.acknowledge(request.connection, request.header.request_id);
}

}  // namespace pgwarp
