// Messages between backends and pgwarp-engine over a local stream socket: plain structs in host byte order, without
// pointers. A frame is a MessageHeader and payload_bytes of payload. Replies carry the request's id and may arrive in
// any order. After a malformed frame the engine drops that connection and no other.
#pragma once

#include <cstdint>

#include "protocol/format.h"
#include "protocol/parameters.h"
#include "protocol/predicates.h"
#include "protocol/rows.h"
#include "protocol/rungs.h"
#include "protocol/tid_bitmap.h"

namespace pgwarp
{

inline constexpr std::uint32_t protocol_magic = 0x50475750;  // "PGWP"
inline constexpr std::uint32_t protocol_version = 4;
inline constexpr char build_name[] = "0.2.0";  // of the library, the engine and its device modules; all must be equal
inline constexpr std::uint32_t max_payload = (1U << 20) + (1U << 16);  // 1 MiB of data and its struct
inline constexpr std::uint64_t transfer_buffer_bytes = 4U << 20;
inline constexpr std::uint32_t no_buffer = 0xffffffffU;           // data is inline, after the struct
inline constexpr char socket_path[] = "pg_stat_tmp/pgwarp.sock";  // relative to the data directory
inline constexpr char lock_path[] = "pg_stat_tmp/pgwarp.lock";

// The layout of blocks of rows is in protocol/rows.h.
enum class MessageType : std::uint16_t {
    hello = 1,            // HelloRequest -> HelloReply; must be first
    search = 2,           // SearchRequest, block of queries padded to 8 bytes, block of predicates -> SearchReply
    load_begin = 3,       // LoadBeginRequest, ArrayShape[array_count] -> LoadBeginReply
    load_chunk = 4,       // LoadChunkRequest[, data] -> acknowledge
    load_end = 5,         // MirrorRequest -> acknowledge
    load_delta = 6,       // LoadDeltaRequest, Tid[count], block of count rows -> acknowledge
    load_tombstones = 7,  // LoadTombstonesRequest, data -> acknowledge
    build_begin = 8,      // BuildBeginRequest -> BuildBeginReply
    build_rows = 9,       // BuildRowsRequest[, Tid[count], block of count rows] -> acknowledge
    build_run = 10,       // BuildRequest -> progress ..., BuildRunReply
    build_read = 11,      // BuildReadRequest -> acknowledge[, data]
    build_end = 12,       // BuildRequest -> acknowledge
    lease_buffer = 13,    // LeaseBufferRequest -> LeaseBufferReply with a file descriptor (SCM_RIGHTS)
    return_buffer = 14,   // ReturnBufferRequest -> acknowledge
    status = 15,          // no payload -> StatusReply
    release = 16,         // MirrorRequest -> acknowledge
    search_indexes =
        17,             // SearchIndexesRequest, IndexTarget[], block of queries padded to 8 bytes, block of predicates
                        // -> SearchIndexesReply
    build_array = 18,   // BuildArrayRequest, data -> acknowledge
    load_prepare = 19,  // MirrorRequest -> acknowledge; readies a complete load, also again after more entries
    load_tids = 20,     // LoadTidsRequest, u64[count] -> acknowledge
    acknowledge = 32,   // reply without payload (or data of build_read)
    progress = 33,      // ProgressReply; the final reply follows later
    error = 34,         // ErrorReply
    reply = 35,         // the reply struct of the request's type
};

// The id of a request that gets no reply.
inline constexpr std::uint64_t unanswered = 0;

// Upper limit that a receiver applies to MessageHeader::poll_hint_ns: longer polling costs more than it saves.
inline constexpr std::uint32_t longest_poll_hint_ns = 200000;

struct MessageHeader {
    std::uint32_t magic;
    std::uint16_t type;  // MessageType
    std::uint16_t reserved;
    std::uint32_t payload_bytes;
    // In a final reply: the time that its receiver may poll for the reply to its next request before it blocks; 0: it
    // blocks at once. In all other frames 0, as in frames of an engine without this field.
    std::uint32_t poll_hint_ns;
    std::uint64_t request_id;
};
static_assert(sizeof(MessageHeader) == 24);

struct HelloRequest {
    std::uint32_t version;
    std::int32_t process_id;
    std::uint64_t incarnation;  // of the server; a changed value makes the engine drop every mirror
    char build[32];
};

struct HelloReply {
    std::uint32_t version;
    std::int32_t process_id;
    char build[32];
    char device[64];  // "cpu (AVX3_ZEN4, 2 threads)"
};

// The device of the engine that serves a mirror.
enum class MirrorDevice : std::uint32_t {
    best = 0,  // the GPU where there is one
    cpu = 1,   // for indexes in quarantine
};

// Identifies an index and its generation: an in-place rebuild changes the generation.
struct MirrorKey {
    std::uint32_t tablespace;
    std::uint32_t database;
    std::uint32_t relation;     // relfilenode
    std::int32_t temp_backend;  // -1 for permanent and unlogged relations
    std::uint64_t generation;
    MirrorDevice device;
    std::uint32_t reserved;  // 0
    friend bool operator==(const MirrorKey&, const MirrorKey&) = default;
};
static_assert(sizeof(MirrorKey) == 32);

// The kind of a search.
enum class SearchMode : std::uint8_t {
    normal = 0,        // the method's own search with `effort` and `settings`
    continuation = 1,  // exact order, rows after the cursor; one query
    term_counts = 2,   // statistics of the terms of a query, in the place of results; one query
};

// Faults for tests, which only a build with PGWARP_FAULTS accepts; other builds refuse a value other than none as
// malformed.
enum class Fault : std::uint16_t {
    none = 0,
    crash = 1,
    sleep = 2,  // 10 s, cancellable
    out_of_memory = 3,
    hang = 4,  // the device, for a minute
};

// A position in the exact order of rows, by (distance, ordinal).
struct SearchCursor {
    double distance;        // -infinity = from the first row
    std::uint64_t ordinal;  // source << 48 | number; source 0 = row of the index, 1 + i = delta log i
};
inline constexpr std::uint32_t place_source_shift = 48;

struct SearchRequest {
    MirrorKey key;
    std::uint64_t delta_end[delta_log_count];  // the search covers at least these entries of each log
    std::uint64_t tombstone_version;           // the search uses at least this version
    RowForm form;                              // of the queries, which have no attributes
    PredicateForm predicates;                  // only rows that pass its predicate answer a query
    std::uint64_t tids;                        // only rows of this bitmap of the connection do; no_tids: of all
    std::uint32_t k;
    std::uint32_t query_count;
    std::uint32_t dimensions;    // floats of a dense query; of lists 0
    std::uint32_t load_wait_ms;  // longest time that the request is parked while another connection loads the mirror
    std::int64_t effort;
    SearchCursor after;  // continuation only
    SearchMode mode;
    std::uint8_t want_places;  // 1: the reply gives each result's place
    std::uint16_t fault;       // Fault
    std::uint32_t earlier_count;
    SearchRung earlier[max_rungs - 1];  // rungs before that of k and effort, each with a smaller k; normal mode only
    ParameterList settings;
};

// The outcome of a search. The sender supplies missing data and repeats the request.
enum class SearchStatus : std::uint8_t {
    answered = 0,
    need_load = 1,        // no mirror: the sender is asked to load it (load_begin picks the loader)
    need_delta = 2,       // mirror ends at have_delta_end
    need_tombstones = 3,  // mirror has have_tombstone_version
    still_loading = 4,    // load_wait_ms passed
    alone = 5,            // of one index among several: it needs a request of its own
    need_tids = 6,        // the connection has no such bitmap (load_tids)
};

// The ways in which a search answers queries with predicates, as a set of bits.
enum class FilterWays : std::uint8_t {
    none = 0,
    compared = 1,  // the rows that pass were compared, exactly
    searched = 2,  // the method's own search, which tests rows on its way
    scanned = 4,   // the exact search of all rows, which tests them
};
constexpr FilterWays operator|(FilterWays a, FilterWays b)
{
    return static_cast<FilterWays>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}

// If answered, followed by uint32 counts[query_count] (padded to 8 bytes), Result[sum of counts] and, where they were
// requested, uint64 places[sum of counts]: ordinals as in a cursor. With earlier rungs, the first results are those of
// the first rung, up to its k; then come those that the next rung adds, up to its k in total. Results of kind
// approximate are ordered within each rung, other results as a whole. A search for term counts is followed by uint64
// rows, uint64 length, the sum of the rows' lengths, and uint64 counts[terms], the rows that have each term of the
// query (protocol/bag_rows.h).
struct SearchReply {
    std::uint64_t have_delta_end[delta_log_count];
    std::uint64_t have_tombstone_version;
    std::uint64_t engine_ns;    // from the request's last byte read to the reply's first byte written
    std::uint64_t queue_ns;     // part of engine_ns outside of the dispatches of this search
    double bound_width;         // for lower bounds: the distance exceeds the result's value by at most this
    std::uint32_t batch_width;  // queries in the widest of these dispatches
    std::uint32_t query_count;
    SearchCursor last;  // of the last result, for a continuation (one query)
    SearchStatus status;
    ResultKind kind;
    std::uint8_t on_cuda;
    std::uint8_t has_places;
    float delta_cost;  // of the index: Mirror::delta_cost()
    // With predicates or a bitmap: rows that pass, of the query with the most; dead ones count. Estimated where a
    // predicate has several terms and its rows were not compared.
    std::uint64_t passing_rows;
    FilterWays filter_ways;  // of all queries
    std::uint8_t reserved[7];
    ParameterList resolved;  // settings as used
};

// The method's own search of several indexes for the same queries with the same settings. The engine never parks it.
// Followed by IndexTarget[index_count], the queries, and their predicates as in a search.
struct SearchIndexesRequest {
    std::uint32_t index_count;
    std::uint32_t query_count;
    std::uint32_t dimensions;  // as in SearchRequest
    std::uint16_t fault;       // Fault
    std::uint16_t reserved;
    RowForm form;              // as in SearchRequest
    PredicateForm predicates;  // in every index
    ParameterList settings;
};
static_assert(sizeof(SearchIndexesRequest) % 8 == 0);

// One index of a SearchIndexesRequest.
struct IndexTarget {
    MirrorKey key;
    std::uint64_t delta_end[delta_log_count];  // as in SearchRequest
    std::uint64_t tombstone_version;
    std::int64_t effort;
    std::uint32_t k;
    std::uint32_t want_places;  // 0 or 1
    std::uint32_t earlier_count;
    std::uint32_t reserved;             // 0
    SearchRung earlier[max_rungs - 1];  // as in SearchRequest
};
static_assert(sizeof(IndexTarget) == 128);

// Followed by IndexAnswer[index_count], uint32 counts[index_count][query_count] (padded to 8 bytes), Result[sum of
// counts], and uint64 places[...] of the results of those indexes whose targets set want_places. An index without an
// answer has counts of 0.
struct SearchIndexesReply {
    std::uint64_t engine_ns;
    std::uint64_t queue_ns;
    std::uint32_t index_count;
    std::uint32_t query_count;
    ParameterList resolved;  // settings used for the first answered index
};

// The outcome for one index; its counts and results follow in the reply.
struct IndexAnswer {
    SearchCursor last;  // of the last result, if there is one query
    double bound_width;
    std::uint64_t passing_rows;  // as in SearchReply
    SearchStatus status;
    ResultKind kind;
    std::uint8_t on_cuda;
    FilterWays filter_ways;
    std::uint8_t reserved[4];
};
static_assert(sizeof(IndexAnswer) == 40);

struct MirrorRequest {
    MirrorKey key;
};

// The role that the sender of load_begin asks for.
enum class LoadRole : std::uint8_t {
    load = 0,   // the loader, at once
    claim = 1,  // keeps others from loading until another connection asks to become the loader
    watch = 2,  // waits for the end of another connection's load
    join = 3,   // sends chunks of another connection's load; never waits
    ahead = 4,  // the loader of a generation that no search requests yet: no mirror in use is evicted for it
};

struct LoadBeginRequest {
    MirrorKey key;
    IndexShape shape;
    ParameterList options;
    std::uint64_t rows;
    std::uint64_t tombstone_version;  // of the tombstones that follow before load_end (0 = none follow)
    std::uint32_t array_count;
    std::uint32_t wait_ms;  // longest time to be parked while another connection is the loader
    LoadRole role;
    std::uint8_t reserved[7];
};

// The engine's decision on a load_begin.
enum class LoadGrant : std::uint8_t {
    granted = 0,
    already_loaded = 1,
    still_loading = 2,
    absent = 3,  // to a watcher or joiner: no connection loads it (any more)
};

struct LoadBeginReply {
    LoadGrant grant;
    std::uint8_t reserved[7];
};

// Bytes [offset, offset + length) of an array, inline or in a leased buffer.
struct LoadChunkRequest {
    MirrorKey key;
    std::uint32_t array;   // index into the shapes of load_begin
    std::uint32_t buffer;  // leased buffer, or no_buffer
    std::uint64_t buffer_offset;
    std::uint64_t offset;  // in bytes of the array
    std::uint64_t length;
};

// Entries [first, first + count) of one log. Entries that the mirror has already are ignored; a gap is an error.
struct LoadDeltaRequest {
    MirrorKey key;
    std::uint64_t first;
    std::uint32_t log;
    std::uint32_t count;
    RowForm form = {};  // the width of dense rows follows from the message's length
};

// Staged by connection; with `final` the staged tombstones take effect together, as `version`.
struct LoadTombstonesRequest {
    MirrorKey key;
    std::uint64_t version;
    std::uint64_t first;   // source 0: index of the first 64-bit word; source 1 + i: unused
    std::uint32_t source;  // 0: words of the row bitmap follow; 1 + i: u64 ordinals of dead entries of log i follow
    std::uint32_t count;   // words or ordinals
    std::uint8_t final;
    std::uint8_t reserved[7];
};

// A piece of a bitmap of heap addresses (protocol/tid_bitmap.h). The connection keeps it for searches once it is
// complete, in the place of the one that was used for the longest time.
struct LoadTidsRequest {
    std::uint64_t bitmap;  // the sender's number for it; not no_tids
    std::uint64_t first;   // words sent before; 0 begins anew
    std::uint32_t count;   // of words that follow
    std::uint32_t final;   // 1: these are the last
};

enum class BuildKind : std::uint32_t {
    whole = 0,      // trains, encodes and calibrates
    extend = 1,     // encodes rows for an existing index with the (effective) options, from given arrays of it
    calibrate = 2,  // measures the recall of such an index again, from given arrays of it; makes no index
};

struct BuildBeginRequest {
    IndexShape shape;
    ParameterList options;
    std::uint64_t expected_rows;  // estimate, used for sizing only
    BuildKind kind;
    std::uint32_t reserved;  // 0
};

struct BuildBeginReply {
    std::uint64_t token;  // random; with it other connections (parallel workers) append rows
};

struct BuildRequest {
    std::uint64_t token;
};

// Rows for a build, inline or in a leased buffer.
struct BuildRowsRequest {
    std::uint64_t token;
    std::uint32_t count;
    std::uint32_t buffer;       // or no_buffer: Tid[count] and the rows follow inline
    std::uint64_t tids_offset;  // in the buffer
    std::uint64_t rows_offset;  // in the buffer; dense rows are normalised by the engine when the metric is cosine
    RowForm form = {};
};

// Progress of a build, for the server's progress view.
struct ProgressReply {
    char phase[32];
    std::uint64_t done;
    std::uint64_t total;
};

// Followed by ArrayShape[array_count].
struct BuildRunReply {
    std::uint64_t rows;
    Calibration calibration;
    ParameterList options;  // effective
    std::uint32_t array_count;
    std::uint32_t reserved;
};

// Asks for bytes [offset, offset + length) of a finished build's array.
struct BuildReadRequest {
    std::uint64_t token;
    std::uint32_t array;
    std::uint32_t buffer;  // or no_buffer: at most 1 MiB comes back inline
    std::uint64_t buffer_offset;
    std::uint64_t offset;
    std::uint64_t length;
};

// A piece of an array of the index that a build extends.
struct BuildArrayRequest {
    std::uint64_t token;
    ArrayShape shape;
    std::uint64_t offset;  // in bytes of the array
    std::uint64_t length;  // bytes of data that follow
};

enum class BufferPurpose : std::uint32_t { bulk = 0, query = 1 };

struct LeaseBufferRequest {
    BufferPurpose purpose;
    std::uint32_t wait_ms;
};

struct LeaseBufferReply {
    std::uint32_t buffer;  // no_buffer if none became free in time; then no descriptor is attached
    std::uint32_t reserved;
    std::uint64_t bytes;
};

struct ReturnBufferRequest {
    std::uint32_t buffer;
    std::uint32_t reserved;
};

// The state of one mirror.
struct MirrorStatus {
    MirrorKey key;
    Method method;
    std::uint8_t on_cuda;
    std::uint8_t loading;
    std::int8_t gpu;     // number of the device; -1: the CPU
    std::uint8_t split;  // the vectors that rank candidates lie in page-locked host memory
    std::uint8_t reserved[3];
    std::uint64_t rows;
    std::uint64_t delta_rows;
    std::uint64_t part_rows;  // of the delta rows, indexed inside the mirror
    double delta_cost;        // Mirror::delta_cost()
    std::uint64_t dead_rows;
    std::uint64_t bytes;
    std::uint64_t device_bytes;  // of `bytes`
    std::uint64_t searches;      // queries answered
    std::uint64_t batches;       // dispatches to the device
    std::uint64_t widest_batch;  // queries in the widest dispatch
    std::uint64_t engine_ns;     // spent on dispatches
    std::uint64_t queue_ns;      // from request to reply without the dispatches, summed over queries
    std::uint64_t answer_ns;     // from request to reply, summed over queries
    std::uint64_t idle_ms;       // since the last search
};

// Followed by MirrorStatus[mirror_count].
struct StatusReply {
    char device[64];
    std::int32_t process_id;
    std::uint32_t mirror_count;
    std::uint64_t memory_used;     // of the GPUs, workspaces included; of the host if there is no GPU
    std::uint64_t memory_allowed;  // 0 = unlimited
    std::uint64_t host_memory_used;
    std::uint64_t host_memory_allowed;
    std::uint64_t uptime_ms;
    std::uint32_t connections;
    std::uint32_t builds;
};

// Error classes, from which backends derive SQLSTATEs.
enum class ErrorCode : std::uint32_t {
    bad_request = 1,  // the request itself is invalid
    internal = 2,
    cancelled = 3,
    out_of_memory = 4,
    unknown_build = 5,
    unknown_mirror = 6,
    other_version = 7,
    shutting_down = 8,
    out_of_device_memory = 9,
};

// Texts are zero-terminated; an empty hint means none.
struct ErrorReply {
    ErrorCode code;
    char message[256];
    char hint[124];
};

}  // namespace pgwarp
