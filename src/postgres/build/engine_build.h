// One build inside the engine, seen from the backend that leads it.
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
    uint64 token;
    uint64 epoch;  // of the connection: the engine frees the build when that closes
};

void begin_engine_build(EngineBuild* build);
// Trains and encodes, showing progress; returns a palloc'ed copy of the reply followed by its array shapes.
BuildRunReply* run_engine_build(const EngineBuild* build);
inline constexpr uint32 inline_read_bytes = 1U << 20;  // what is read at most without a buffer
// Reads a piece of an array: into the buffer when it has memory, else out of the reply. Returns where it lies. Any
// process may read what the leader's build made.
const char* read_built_piece(const EngineBuild* build, const TransferBuffer* buffer, uint32 array, uint64 offset,
                             uint64 length);
// Hands each piece of one of the built arrays to `take`.
void read_built_array(const EngineBuild* build, uint32 array, uint64 bytes, TransferBuffer* buffer,
                      void (*take)(void* state, const void* piece, uint64 length), void* state);
// Enters every array into the index. `written` has one for each: those with extents lie in pages, the others are
// copied from the engine.
void store_built_arrays(const EngineBuild* build, const BuildRunReply* result, const StoredArray* written,
                        IndexWriter* writer);
// Before the run of an extending build: a piece of an array of the index, at most 1 MiB.
void give_array(const EngineBuild* build, const ArrayShape& shape, uint64 offset, const void* bytes, uint64 length);
void end_engine_build(EngineBuild* build);
// Frees the build after an error, if the engine still has it. Raises nothing.
void abandon_engine_build(EngineBuild* build);

}  // namespace pgwarp
