#include "postgres/client/search_predicates.h"

namespace pgwarp
{

namespace
{

constexpr char zeros[sizeof(uint64)] = {};

// The piece that fills a block of this length up to a multiple of 8 bytes.
RequestPiece padding_of(uint64 bytes)
{
    return {zeros, static_cast<uint32>(TYPEALIGN(sizeof(uint64), bytes) - bytes)};
}

}  // namespace

int search_pieces(SearchRequest* request, const RowView& queries, const SearchPredicates& predicates,
                  RequestPiece pieces[most_search_pieces])
{
    static_assert(sizeof(SearchRequest) % sizeof(uint64) == 0);
    describe_queries(queries, request);
    request->predicates = predicates.form;
    pieces[0] = {request, sizeof(*request)};
    int count = 1 + row_pieces(queries, pieces + 1);
    if (predicates.form.count == 0) return count;
    const RequestPiece padding = padding_of(block_of(queries).bytes());
    if (padding.length > 0) pieces[count++] = padding;
    pieces[count++] = {predicates.words, static_cast<uint32>(sizeof(uint64) * predicates.form.words)};
    if (predicates.form.count == 1) return count;
    const uint64 name_bytes = sizeof(uint32) * queries.count;
    pieces[count++] = {predicates.predicate_of, static_cast<uint32>(name_bytes)};
    const RequestPiece name_padding = padding_of(name_bytes);
    if (name_padding.length > 0) pieces[count++] = name_padding;
    return count;
}

}  // namespace pgwarp
