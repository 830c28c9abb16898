// From payload bytes to checked requests. A decode_ function throws Malformed for impossible lengths, counts or
// enumerators. Values that are possible but wrong for an index are refused later, by code that knows the index
// (BadRequest).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/filter/query_predicates.h"
#include "engine/server/frame.h"

namespace pgwarp
{

using Bytes = std::span<const std::byte>;

template <class T>
Bytes as_bytes(const T& value)
{
    return std::as_bytes(std::span(&value, 1));
}

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
    PredicateBlock predicates;
};
SearchMessage decode_search(Bytes payload);

struct SearchIndexesMessage {
    SearchIndexesRequest request;
    std::span<const IndexTarget> targets;
    RowView queries;
    PredicateBlock predicates;
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

struct LoadTidsMessage {
    LoadTidsRequest request;
    std::span<const std::uint64_t> words;
};
LoadTidsMessage decode_load_tids(Bytes payload);

struct BuildRowsMessage {
    BuildRowsRequest request;
    RowBlock block;  // dense rows in a buffer have width 0 here: the build knows it
    Bytes data;      // empty when it lies in a transfer buffer
};
// The rows of a block that may lie in a transfer buffer, which its sender can change at any time. Lists are therefore
// copied into `copy` before they are checked; dense rows stay in place. Throws BadRequest for wrong offsets.
RowView safe_rows(const RowBlock& block, Bytes bytes, std::vector<std::uint64_t>& copy);
BuildRowsMessage decode_build_rows(Bytes payload);

struct BuildArrayMessage {
    BuildArrayRequest request;
    Bytes data;
};
BuildArrayMessage decode_build_array(Bytes payload);

}  // namespace pgwarp
