// Indexes of lists as a backend keeps them, and the requests that it sends for them.
#pragma once

#include <algorithm>
#include <vector>

#include "engine_fixture.h"
#include "list_fixture.h"
#include "overlap_method/overlap.h"

namespace pgwarp::test
{

inline IndexShape list_shape(bool weighted, std::uint32_t range = 0, std::uint32_t attributes = 0)
{
    IndexShape shape{};
    shape.method = overlap_method;
    shape.element = weighted ? ElementType::weighted_list : ElementType::list;
    shape.dimensions = range;
    shape.attribute_count = attributes;
    return shape;
}

inline std::vector<std::byte> block_bytes(const RowView& rows)
{
    std::vector<std::byte> bytes(block_of(rows).bytes());
    write_rows(rows, bytes.data());
    return bytes;
}

inline Tid numbered_tid(std::size_t number)
{
    return {static_cast<std::uint32_t>(number / 10), static_cast<std::uint16_t>(number % 10 + 1), 0};
}

inline std::vector<Tid> numbered_tids(std::size_t first, std::size_t count)
{
    std::vector<Tid> tids;
    for (std::size_t i = 0; i < count; ++i) tids.push_back(numbered_tid(first + i));
    return tids;
}

inline void send_built_rows(EngineClient& client, std::uint64_t token, std::span<const Tid> tids, const RowView& rows)
{
    BuildRowsRequest request{token, static_cast<std::uint32_t>(rows.count), no_buffer, 0, 0};
    request.form = block_of(rows).form;
    client.call(MessageType::build_rows, EngineClient::bytes_of(request), std::as_bytes(tids), block_bytes(rows));
}

// Builds with rows that arrive in pieces, the last first: the built index does not depend on the order.
inline BuiltIndex build_lists(EngineClient& client, const TestIndex& index, const std::vector<Tid>& tids,
                              const RowView& rows, BuildKind kind = BuildKind::whole)
{
    BuildBeginRequest begin{};
    begin.shape = index.shape;
    begin.kind = kind;
    const BuildRequest token{
        client.call(MessageType::build_begin, EngineClient::bytes_of(begin)).as<BuildBeginReply>().token};
    constexpr std::size_t step = 100;
    for (std::size_t pieces = (rows.count + step - 1) / step; pieces-- > 0;) {
        const std::size_t first = pieces * step;
        const std::size_t count = std::min(step, rows.count - first);
        send_built_rows(client, token.token, std::span(tids).subspan(first, count), rows.slice(first, count));
    }
    BuiltIndex built =
        read_build(client, token.token, client.call(MessageType::build_run, EngineClient::bytes_of(token)));
    client.call(MessageType::build_end, EngineClient::bytes_of(token));
    return built;
}

inline void send_list_delta(EngineClient& client, const TestIndex& index, std::uint32_t log, std::uint64_t first,
                            const std::vector<Tid>& tids, const RowView& rows)
{
    LoadDeltaRequest request{index.key, first, log, static_cast<std::uint32_t>(rows.count)};
    request.form = block_of(rows).form;
    client.call(MessageType::load_delta, EngineClient::bytes_of(request), EngineClient::bytes_of_all(tids),
                block_bytes(rows));
}

inline SearchRequest list_request(const TestIndex& index, const RowView& queries, std::uint32_t k)
{
    SearchRequest request = search_request(index, k, static_cast<std::uint32_t>(queries.count));
    request.dimensions = 0;
    request.form = block_of(queries).form;
    request.want_places = 1;
    return request;
}

inline SearchOutcome search_lists(EngineClient& client, const SearchRequest& request, const RowView& queries)
{
    return decode_outcome(client.call(MessageType::search, EngineClient::bytes_of(request), block_bytes(queries)));
}

}  // namespace pgwarp::test
