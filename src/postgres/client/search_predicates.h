// The predicates of a search's queries, as pieces of its request.
#pragma once

#include "postgres/client/row_pieces.h"
#include "protocol/predicates.h"

namespace pgwarp
{

// Predicates (protocol/predicates.h) of the queries of one request; the words are the caller's.
struct SearchPredicates {
    PredicateForm form;
    const uint64* words;
    const uint32* predicate_of;  // [queries] where there are several predicates
};

// One predicate of all queries; without words none.
inline SearchPredicates predicate_of_all(const uint64* words, uint32 count)
{
    return {{count > 0 ? 1U : 0U, count}, words, nullptr};
}

inline constexpr int most_search_pieces = 1 + most_row_pieces + 4;

// Describes the queries and predicates in the request, and lists the pieces of its message; returns their number.
int search_pieces(SearchRequest* request, const RowView& queries, const SearchPredicates& predicates,
                  RequestPiece pieces[most_search_pieces]);

}  // namespace pgwarp
