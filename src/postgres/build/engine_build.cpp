// The requests of a build.
#include "postgres/build/engine_build.h"

#include "postgres/build/build_phases.h"
#include "postgres/client/request.h"
#include "protocol/build_sample.h"

namespace pgwarp
{

namespace
{

// Show the engine's progress in pg_stat_progress_create_index.
void show_progress(const ProgressReply* progress, void*)
{
    report_build_phase(progress->phase, progress->done, progress->total);
}

// Raise an error for a reply that is shorter than its counts imply.
[[noreturn]] void report_short_reply()
{
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("pgwarp-engine sent a reply that is too short")));
}

}  // namespace

const char* read_built_piece(const EngineBuild* build, const TransferBuffer* buffer, uint32 array, uint64 offset,
                             uint64 length)
{
    BuildReadRequest request = {};
    request.token = build->token;
    request.array = array;
    request.buffer = buffer->map != nullptr ? buffer->id : no_buffer;
    request.offset = offset;
    request.length = length;
    const RequestPiece piece = {&request, sizeof(request)};
    const EngineReply reply = engine_request(MessageType::build_read, &piece, 1, false);
    if (buffer->map != nullptr) return buffer->map;
    if (reply.payload_bytes < length) report_short_reply();
    return reply.payload;
}

void begin_engine_build(EngineBuild* build)
{
    BuildBeginRequest request = {};
    request.kind = build->kind;
    request.shape = build->shape;
    request.options = build->options;
    request.expected_rows = build->expected_rows > 0 ? static_cast<uint64>(build->expected_rows) : 0;
    const RequestPiece piece = {&request, sizeof(request)};
    // The request may be repeated after a restart of the engine, since no rows were sent yet.
    const EngineReply reply = engine_request(MessageType::build_begin, &piece, 1, true);
    BuildBeginReply begun;
    BuildSample sample;
    if (reply.payload_bytes < sizeof(begun) + sizeof(sample)) report_short_reply();
    memcpy(&begun, reply.payload, sizeof(begun));
    memcpy(&sample, reply.payload + sizeof(begun), sizeof(sample));
    build->token = begun.token;
    build->wanted_sample = sample.wanted_rows;
    build->epoch = engine_connection_epoch();
    build->begun = true;
}

BuildRunReply* run_engine_build(const EngineBuild* build)
{
    const BuildRequest request = {build->token};
    const RequestPiece piece = {&request, sizeof(request)};
    const EngineReply reply = engine_request(MessageType::build_run, &piece, 1, false, {.progress = show_progress});
    if (reply.payload_bytes < sizeof(BuildRunReply)) report_short_reply();
    auto* result = static_cast<BuildRunReply*>(palloc(reply.payload_bytes));
    memcpy(result, reply.payload, reply.payload_bytes);
    if (reply.payload_bytes < sizeof(BuildRunReply) + sizeof(ArrayShape) * uint64{result->array_count}) {
        report_short_reply();
    }
    return result;
}

void read_built_array(const EngineBuild* build, uint32 array, uint64 bytes, TransferBuffer* buffer,
                      void (*take)(void* state, const void* piece, uint64 length), void* state)
{
    const uint64 piece_bytes = buffer->map != nullptr ? buffer->bytes : inline_read_bytes;
    for (uint64 offset = 0; offset < bytes;) {
        const uint64 length = Min(piece_bytes, bytes - offset);
        take(state, read_built_piece(build, buffer, array, offset, length), length);
        offset += length;
    }
}

void give_array(const EngineBuild* build, const ArrayShape& shape, uint64 offset, const void* bytes, uint64 length)
{
    BuildArrayRequest request = {};
    request.token = build->token;
    request.shape = shape;
    request.offset = offset;
    request.length = length;
    const RequestPiece pieces[2] = {{&request, sizeof(request)}, {bytes, static_cast<uint32>(length)}};
    engine_request(MessageType::build_array, pieces, 2, false);
}

static void store_piece(void* state, const void* piece, uint64 length)
{
    write_index_array(static_cast<IndexWriter*>(state), piece, length);
}

void store_built_arrays(const EngineBuild* build, const BuildRunReply* result, const StoredArray* written,
                        IndexWriter* writer)
{
    const auto* shapes = reinterpret_cast<const ArrayShape*>(result + 1);
    TransferBuffer buffer = lease_transfer_buffer(BufferPurpose::bulk);
    for (uint32 i = 0; i < result->array_count; ++i) {
        if (written[i].extent_count > 0) {
            add_written_array(writer, written[i]);
            continue;
        }
        add_index_array(writer, shapes[i]);
        read_built_array(build, i, shapes[i].bytes(), &buffer, store_piece, writer);
    }
    if (buffer.map != nullptr) return_transfer_buffer(&buffer);
}

void end_engine_build(EngineBuild* build)
{
    const BuildRequest request = {build->token};
    const RequestPiece piece = {&request, sizeof(request)};
    build->begun = false;
    engine_request(MessageType::build_end, &piece, 1, false);
}

void abandon_engine_build(EngineBuild* build)
{
    // The engine has already freed the build when its connection was closed.
    if (!build->begun || build->epoch != engine_connection_epoch()) return;
    const BuildRequest request = {build->token};
    build->begun = false;
    post_request(MessageType::build_end, &request, sizeof(request));
}

}  // namespace pgwarp
