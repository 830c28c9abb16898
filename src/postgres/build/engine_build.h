// One build inside the engine, as the client that leads it sees it.
#pragma once

#include "postgres/build/row_sink.h"
#include "postgres/storage/build_pages.h"

namespace pgwarp
{

struct EngineBuild {
    BuildKind kind;
    IndexShape shape;
    ParameterList options;
    double expected_rows;
    bool begun;
    uint64 wanted_sample;  // of the engine, of rows to train on before rows come (protocol/build_sample.h)
    uint64 token;
    uint64 epoch;  // of the connection: when the connection closes, the engine frees the build
};

// Begins the build in the engine, which gives it a token. Raises an error when the engine cannot be reached.
void begin_engine_build(EngineBuild* build);
// Trains and encodes, with progress. Returns a palloc'ed copy of the reply, followed by its array shapes.
BuildRunReply* run_engine_build(const EngineBuild* build);
inline constexpr uint32 inline_read_bytes = 1U << 20;  // the most bytes that one reply carries
// Reads bytes of an array: into the buffer if it has memory, else out of the reply. Returns their address, valid until
// the next request. Any process may read the arrays of the leader's build.
const char* read_built_piece(const EngineBuild* build, const TransferBuffer* buffer, uint32 array, uint64 offset,
                             uint64 length);
// Passes each piece of a built array to `take`.
void read_built_array(const EngineBuild* build, uint32 array, uint64 bytes, TransferBuffer* buffer,
                      void (*take)(void* state, const void* piece, uint64 length), void* state);
// Adds every array to the index. `written` has one entry for each: entries with extents are in pages already, the other
// arrays are copied from the engine.
void store_built_arrays(const EngineBuild* build, const BuildRunReply* result, const StoredArray* written,
                        IndexWriter* writer);
// Sends a piece of an array of the index, at most 1 MiB, before the run of a build that extends an index.
void give_array(const EngineBuild* build, const ArrayShape& shape, uint64 offset, const void* bytes, uint64 length);
// Frees the finished build in the engine.
void end_engine_build(EngineBuild* build);
// Frees the build after an error, if the engine still has it. Raises no errors.
void abandon_engine_build(EngineBuild* build);

}  // namespace pgwarp
