// Decoding of messages: every length, count and enumerator is checked before it is used.
#include "engine/server/decode.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "methods/errors.h"
#include "numeric/metric.h"

namespace pgwarp
{

namespace
{

constexpr std::uint32_t max_arrays = 64;
constexpr std::uint64_t max_array_bytes = std::uint64_t{1} << 44;

void require(bool condition, const char* what)
{
    if (!condition) throw Malformed(what);
}

// The struct at the front of a payload, whose length check_header() has checked.
template <class T>
T front(Bytes payload)
{
    static_assert(std::is_trivially_copyable_v<T>);
    require(payload.size() >= sizeof(T), "message too short");
    T value;
    std::memcpy(static_cast<void*>(&value), payload.data(), sizeof(T));
    return value;
}

template <class T>
T whole(Bytes payload)
{
    require(payload.size() == sizeof(T), "message of a wrong length");
    return front<T>(payload);
}

template <class T>
std::span<const T> as_array(Bytes bytes)
{
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <std::size_t N>
bool is_terminated(const char (&text)[N])
{
    return std::memchr(text, 0, N) != nullptr;
}

void check_parameters(const ParameterList& list)
{
    require(list.count <= ParameterList::capacity, "too many parameters");
    for (std::uint32_t i = 0; i < list.count; ++i)
        require(is_terminated(list.items[i].name), "parameter without a name's end");
}

void check_shape(const IndexShape& shape)
{
    require(shape.element >= ElementType::float32 && shape.element <= last_element, "unknown element type");
    require(shape.attribute_count <= max_attributes, "rows with too many attributes");
    require(shape.metric <= static_cast<std::uint8_t>(last_metric), "unknown metric");
    if (is_list(shape.element)) return;
    require(shape.metric >= 1, "unknown metric");
    require(shape.dimensions >= 1 && shape.dimensions <= max_dimensions, "number of dimensions out of range");
}

void check_array(const ArrayShape& array)
{
    require(is_terminated(array.name), "array without a name's end");
    const std::uint32_t element = array_type_bytes(array.type);
    require(element != 0, "unknown array type");
    std::uint64_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(array.rows, array.width, &bytes) ||
                          __builtin_mul_overflow(bytes, std::uint64_t{element}, &bytes);
    require(!overflow && bytes <= max_array_bytes, "array too large");
}

// The rows of a message, which take all of `bytes`.
RowView decode_rows(const RowBlock& block, Bytes bytes)
{
    const char* fault = row_block_fault(block);
    require(fault == nullptr, fault);
    require(bytes.size() == block.bytes(), "rows of a wrong length");
    const RowView rows = view_rows(block, bytes.data());
    if (rows.offsets != nullptr) {
        fault = offsets_fault(rows.offsets, rows.count, block.form.word_count);
        require(fault == nullptr, fault);
    }
    return rows;
}

RowView decode_queries(const RowForm& form, std::uint32_t count, std::uint32_t dimensions, Bytes bytes)
{
    require(form.layout != RowLayout::dense || dimensions >= 1, "number of dimensions out of range");
    require(form.attribute_count == 0, "queries with attributes");
    return decode_rows({form, count, dimensions}, bytes);
}

// Bytes of queries, at the begin of `bytes` where predicates follow, and all of them else. Request: SearchRequest or
// SearchIndexesRequest.
template <class Request>
std::size_t query_bytes(const Request& request, std::size_t bytes)
{
    if (request.predicates.words == 0) return bytes;
    const RowBlock block{request.form, request.query_count, request.dimensions};
    const char* fault = row_block_fault(block);
    require(fault == nullptr, fault);
    require(block.bytes() <= bytes, "search without its predicates");
    return block.bytes();
}

// The predicates of queries, in all that follows them.
PredicateBlock decode_predicates(const PredicateForm& form, std::uint32_t query_count, Bytes bytes)
{
    PredicateBlock block{form, {}, {}};
    require((form.count == 0) == (form.words == 0), "predicates without words");
    if (form.count == 0) return block;
    require(form.words <= max_predicate_words && form.count <= form.words, "too many predicates in a search");
    require(bytes.size() == form.bytes(query_count), "predicates of a wrong length");
    block.words = as_array<std::uint64_t>(bytes.first(sizeof(std::uint64_t) * form.words));
    if (form.count > 1)
        block.names = as_array<std::uint32_t>(bytes.subspan(block.words.size_bytes())).first(query_count);
    const char* fault = predicates_fault(block, max_attributes);
    require(fault == nullptr, fault);
    return block;
}

// The queries of a message and their predicates, which are the rest of it. Message: SearchMessage or
// SearchIndexesMessage.
template <class Message>
void take_queries(Message& message, Bytes rest)
{
    const auto& request = message.request;
    const std::size_t queries = query_bytes(request, rest.size());
    message.queries = decode_queries(request.form, request.query_count, request.dimensions, rest.first(queries));
    const std::size_t padded = std::min((queries + 7) / 8 * 8, rest.size());
    message.predicates = decode_predicates(request.predicates, request.query_count,
                                           request.predicates.count == 0 ? Bytes() : rest.subspan(padded));
}

// The block of `count` rows in the last `bytes` of a message. The length gives the width of dense rows.
RowBlock block_within(const RowForm& form, std::uint32_t count, std::size_t bytes)
{
    RowBlock block{form, count, 0};
    if (form.layout != RowLayout::dense || count == 0 || bytes < block.attribute_bytes()) return block;
    block.width = static_cast<std::uint32_t>((bytes - block.attribute_bytes()) / sizeof(float) / count);
    require(block.width > 0, "rows without values");
    return block;
}

// The k of the rungs of a search ascends.
void check_rungs(std::uint32_t earlier_count, const SearchRung (&earlier)[max_rungs - 1], std::uint32_t k)
{
    require(earlier_count < max_rungs, "too many rungs in a search");
    for (std::uint32_t i = 0; i < earlier_count; ++i) {
        const std::uint32_t next = i + 1 < earlier_count ? earlier[i + 1].k : k;
        require(earlier[i].k >= 1 && earlier[i].k < next, "rungs of a search that don't ascend");
    }
}

}  // namespace

HelloRequest decode_hello(Bytes payload)
{
    auto request = whole<HelloRequest>(payload);
    require(is_terminated(request.build), "build without an end");
    return request;
}

MirrorKey decode_mirror(Bytes payload)
{
    return whole<MirrorRequest>(payload).key;
}

BuildBeginRequest decode_build_begin(Bytes payload)
{
    auto request = whole<BuildBeginRequest>(payload);
    require(request.kind <= BuildKind::calibrate, "unknown kind of build");
    check_shape(request.shape);
    check_parameters(request.options);
    return request;
}

BuildRequest decode_build(Bytes payload)
{
    return whole<BuildRequest>(payload);
}

BuildReadRequest decode_build_read(Bytes payload)
{
    return whole<BuildReadRequest>(payload);
}

LeaseBufferRequest decode_lease_buffer(Bytes payload)
{
    auto request = whole<LeaseBufferRequest>(payload);
    require(request.purpose == BufferPurpose::bulk || request.purpose == BufferPurpose::query,
            "unknown buffer purpose");
    return request;
}

ReturnBufferRequest decode_return_buffer(Bytes payload)
{
    return whole<ReturnBufferRequest>(payload);
}

SearchMessage decode_search(Bytes payload)
{
    SearchMessage message{front<SearchRequest>(payload), {}, {}};
    const SearchRequest& request = message.request;
    require(request.mode <= SearchMode::term_counts, "unknown search mode");
    require(request.want_places <= 1, "unknown wish in a search");
    require(request.fault <= static_cast<std::uint16_t>(Fault::hang), "unknown fault");
    require(request.query_count >= 1, "search without queries");
    require(request.mode == SearchMode::normal || request.query_count == 1, "search of several queries by one's mode");
    require(request.mode != SearchMode::term_counts || request.tids == no_tids, "count of terms with a bitmap");
    require(request.mode == SearchMode::normal || request.earlier_count == 0,
            "search with rungs by a mode without them");
    check_rungs(request.earlier_count, request.earlier, request.k);
    check_parameters(request.settings);
    take_queries(message, payload.subspan(sizeof(SearchRequest)));
    require(request.predicates.count == 0 || request.mode != SearchMode::term_counts,
            "count of terms with a predicate");
    return message;
}

SearchIndexesMessage decode_search_indexes(Bytes payload)
{
    SearchIndexesMessage message{front<SearchIndexesRequest>(payload), {}, {}, {}};
    const SearchIndexesRequest& request = message.request;
    require(request.fault <= static_cast<std::uint16_t>(Fault::hang), "unknown fault");
    require(request.index_count >= 1 && request.query_count >= 1, "search of nothing");
    check_parameters(request.settings);
    const Bytes rest = payload.subspan(sizeof(SearchIndexesRequest));
    const std::uint64_t target_bytes = std::uint64_t{request.index_count} * sizeof(IndexTarget);
    require(rest.size() >= target_bytes, "search whose indexes have another length");
    message.targets = as_array<IndexTarget>(rest.first(target_bytes));
    for (const IndexTarget& target : message.targets) {
        require(target.want_places <= 1, "unknown wish in a search");
        check_rungs(target.earlier_count, target.earlier, target.k);
    }
    take_queries(message, rest.subspan(target_bytes));
    return message;
}

LoadBeginMessage decode_load_begin(Bytes payload)
{
    LoadBeginMessage message{front<LoadBeginRequest>(payload), {}};
    check_shape(message.request.shape);
    check_parameters(message.request.options);
    require(message.request.role <= LoadRole::ahead, "unknown role in a load");
    const Bytes rest = payload.subspan(sizeof(LoadBeginRequest));
    require(message.request.array_count <= max_arrays, "too many arrays");
    require(rest.size() == message.request.array_count * sizeof(ArrayShape), "load whose arrays have another length");
    message.arrays.resize(message.request.array_count);
    if (!rest.empty()) std::memcpy(message.arrays.data(), rest.data(), rest.size());
    for (const ArrayShape& array : message.arrays) check_array(array);
    return message;
}

LoadChunkMessage decode_load_chunk(Bytes payload)
{
    LoadChunkMessage message{front<LoadChunkRequest>(payload), payload.subspan(sizeof(LoadChunkRequest))};
    const std::uint64_t inline_bytes = message.request.buffer == no_buffer ? message.request.length : 0;
    require(message.data.size() == inline_bytes, "chunk whose data have another length");
    return message;
}

LoadDeltaMessage decode_load_delta(Bytes payload)
{
    LoadDeltaMessage message{front<LoadDeltaRequest>(payload), {}, {}};
    const LoadDeltaRequest& request = message.request;
    require(request.log < delta_log_count, "unknown delta log");
    require(request.first < (std::uint64_t{1} << 48) - request.count, "delta position out of range");
    const Bytes rest = payload.subspan(sizeof(LoadDeltaRequest));
    const std::uint64_t tid_bytes = std::uint64_t{request.count} * sizeof(Tid);
    require(rest.size() >= tid_bytes, "delta too short");
    const Bytes rows = rest.subspan(tid_bytes);
    message.tids = as_array<Tid>(rest.first(tid_bytes));
    message.rows = decode_rows(block_within(request.form, request.count, rows.size()), rows);
    return message;
}

LoadTombstonesMessage decode_load_tombstones(Bytes payload)
{
    LoadTombstonesMessage message{front<LoadTombstonesRequest>(payload), {}};
    require(message.request.source <= delta_log_count, "unknown source of tombstones");
    const Bytes rest = payload.subspan(sizeof(LoadTombstonesRequest));
    require(rest.size() == std::uint64_t{message.request.count} * sizeof(std::uint64_t),
            "tombstones of a wrong length");
    message.values = as_array<std::uint64_t>(rest);
    return message;
}

LoadTidsMessage decode_load_tids(Bytes payload)
{
    LoadTidsMessage message{front<LoadTidsRequest>(payload), {}};
    const LoadTidsRequest& request = message.request;
    require(request.bitmap != no_tids, "bitmap without a number");
    require(request.final <= 1, "unknown wish in a bitmap");
    require(request.first <= max_tid_bitmap_words && request.count <= max_tid_bitmap_words - request.first,
            "bitmap too long");
    const Bytes rest = payload.subspan(sizeof(LoadTidsRequest));
    require(rest.size() == std::uint64_t{request.count} * sizeof(std::uint64_t), "bitmap of a wrong length");
    message.words = as_array<std::uint64_t>(rest);
    return message;
}

BuildRowsMessage decode_build_rows(Bytes payload)
{
    BuildRowsMessage message{front<BuildRowsRequest>(payload), {}, payload.subspan(sizeof(BuildRowsRequest))};
    const BuildRowsRequest& request = message.request;
    message.block = {request.form, request.count, 0};
    if (request.buffer != no_buffer) {
        const char* fault = row_block_fault(message.block);
        require(fault == nullptr, fault);
        require(message.data.empty(), "rows both inline and in a buffer");
        return message;
    }
    const std::uint64_t tid_bytes = std::uint64_t{request.count} * sizeof(Tid);
    require(message.data.size() >= tid_bytes, "rows too short");
    const Bytes rows = message.data.subspan(tid_bytes);
    message.block = block_within(request.form, request.count, rows.size());
    (void)decode_rows(message.block, rows);
    return message;
}

RowView safe_rows(const RowBlock& block, Bytes bytes, std::vector<std::uint64_t>& copy)
{
    if (block.form.layout == RowLayout::dense) return view_rows(block, bytes.data());
    copy.resize((bytes.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    const RowView rows = view_rows(block, std::as_bytes(std::span(copy)).data());
    const char* fault = offsets_fault(rows.offsets, rows.count, block.form.word_count);
    if (fault != nullptr) throw BadRequest(fault);
    return rows;
}

BuildArrayMessage decode_build_array(Bytes payload)
{
    BuildArrayMessage message{front<BuildArrayRequest>(payload), payload.subspan(sizeof(BuildArrayRequest))};
    check_array(message.request.shape);
    require(message.data.size() == message.request.length, "array whose data have another length");
    return message;
}

}  // namespace pgwarp
