// From payload bytes to checked requests. A decode_ function throws Malformed when lengths, counts or enumerations
// can't be; what is well formed but makes no sense for an index is refused later, by whoever knows the index
// (BadRequest).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/server/frame.h"

namespace pgwarp
{

using Bytes = std::span<const std::byte>;

// Requests of fixed size.
HelloRequest decode_hello(Bytes payload);
MirrorKey decode_mirror(Bytes payload);
BuildBeginRequest decode_build_begin(Bytes payload);
BuildRequest decode_build(Bytes payload);
BuildReadRequest decode_build_read(Bytes payload);
LeaseBufferRequest decode_lease_buffer(Bytes payload);
ReturnBufferRequest decode_return_buffer(Bytes payload);

// The spans point into the payload.
struct SearchMessage {
    SearchRequest request;
    RowView queries;
};
SearchMessage decode_search(Bytes payload);

struct SearchIndexesMessage {
    SearchIndexesRequest request;
    std::span<const IndexTarget> targets;
    RowView queries;
};
SearchIndexesMessage decode_search_indexes(Bytes payload);

struct LoadBeginMessage {
    LoadBeginRequest request;
    std::vector<ArrayShape> arrays;
};
LoadBeginMessage decode_load_begin(Bytes payload);

struct LoadChunkMessage {
    LoadChunkRequest request;
    Bytes data;  // empty when it lies in a transfer buffer
};
LoadChunkMessage decode_load_chunk(Bytes payload);

struct LoadDeltaMessage {
    LoadDeltaRequest request;
    std::span<const Tid> tids;
    RowView rows;
};
LoadDeltaMessage decode_load_delta(Bytes payload);

struct LoadTombstonesMessage {
    LoadTombstonesRequest request;
    std::span<const std::uint64_t> values;
};
LoadTombstonesMessage decode_load_tombstones(Bytes payload);

struct BuildRowsMessage {
    BuildRowsRequest request;
    RowBlock block;  // of dense rows without their width, which the build knows
    Bytes data;      // empty when it lies in a transfer buffer
};
// The rows of a block whose bytes may be those of a transfer buffer, which its sender can change at any time: `copy`
// gets lists, so that what is checked is what is read. Throws BadRequest for lists that are none.
RowView safe_rows(const RowBlock& block, Bytes bytes, std::vector<std::uint64_t>& copy);
BuildRowsMessage decode_build_rows(Bytes payload);

struct BuildArrayMessage {
    BuildArrayRequest request;
    Bytes data;
};
BuildArrayMessage decode_build_array(Bytes payload);

}  // namespace pgwarp
