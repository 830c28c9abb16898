// The predicates of a search's queries, as pieces of its request.
#pragma once

#include "postgres/bitmap/search_tids.h"
#include "postgres/client/row_pieces.h"
#include "protocol/predicates.h"

namespace pgwarp
{

// The predicate of one query; without words it has none.
struct QueryPredicate {
    const uint64* words;
    uint32 count;
    friend bool operator==(const QueryPredicate& a, const QueryPredicate& b)
    {
        return a.count == b.count && (a.count == 0 || memcmp(a.words, b.words, sizeof(uint64) * a.count) == 0);
    }
};

// Predicates (protocol/predicates.h) of the queries of one request; the words are the caller's.
struct SearchPredicates {
    PredicateForm form;
    const uint64* words;
    const uint32* predicate_of;        // [queries] where there are several predicates
    const SearchTids* tids = nullptr;  // rows that all queries are for; null: all rows
};

// One predicate of all queries; without words none.
inline SearchPredicates predicate_of_all(const uint64* words, uint32 count)
{
    return {{count > 0 ? 1U : 0U, count}, words, nullptr};
}

// The most bytes that predicates add to a request of this number of queries.
inline uint64 predicate_bytes(uint64 queries)
{
    return sizeof(uint64) * (max_predicate_words + 1) + sizeof(uint32) * (queries + 1);
}

// Gathers the predicates of leading queries, equal ones once, in palloc'ed memory. Returns the number of queries whose
// predicates fit one request, at least 1. All queries have a predicate.
uint32 gather_predicates(const QueryPredicate* predicates, uint32 count, SearchPredicates* out);

inline constexpr int most_query_pieces = most_row_pieces + 4;
inline constexpr int most_search_pieces = 1 + most_query_pieces;
static_assert(1 + most_search_pieces <= most_request_pieces);

// Lists the pieces of queries and their predicates, the end of a message; returns their number.
int query_pieces(const RowView& queries, const SearchPredicates& predicates, RequestPiece pieces[most_query_pieces]);

// Describes the queries and predicates in the request, and lists the pieces of its message; returns their number.
int search_pieces(SearchRequest* request, const RowView& queries, const SearchPredicates& predicates,
                  RequestPiece pieces[most_search_pieces]);

}  // namespace pgwarp
