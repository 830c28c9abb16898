#include "postgres/client/search_predicates.h"

extern "C" {
#include "common/hashfn.h"
}

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

// The numbers of predicates by their hashes.
struct PredicateTable {
    uint32* slots;  // number + 1; 0: free
    uint32 mask;
};

PredicateTable make_table(uint32 count)
{
    uint32 slots = 16;
    while (slots < 2 * count) slots *= 2;
    return {static_cast<uint32*>(palloc0(sizeof(uint32) * slots)), slots - 1};
}

// The slot of an equal predicate, or a free one.
uint32* find_slot(const PredicateTable& table, const QueryPredicate* distinct, const QueryPredicate& predicate)
{
    const auto* bytes = reinterpret_cast<const unsigned char*>(predicate.words);
    uint32 at = hash_bytes(bytes, static_cast<int>(sizeof(uint64) * predicate.count)) & table.mask;
    while (table.slots[at] != 0 && !(distinct[table.slots[at] - 1] == predicate)) at = (at + 1) & table.mask;
    return &table.slots[at];
}

}  // namespace

uint32 gather_predicates(const QueryPredicate* predicates, uint32 count, SearchPredicates* out)
{
    auto* words = static_cast<uint64*>(palloc(sizeof(uint64) * max_predicate_words));
    auto* names = static_cast<uint32*>(palloc(sizeof(uint32) * count));
    auto* distinct = static_cast<QueryPredicate*>(palloc(sizeof(QueryPredicate) * count));
    const PredicateTable table = make_table(count);
    *out = {{0, 0}, words, names};
    uint32 fitting = 0;
    for (; fitting < count; ++fitting) {
        const QueryPredicate& predicate = predicates[fitting];
        uint32* slot = find_slot(table, distinct, predicate);
        if (*slot == 0) {
            if (out->form.words + predicate.count > max_predicate_words) break;
            memcpy(words + out->form.words, predicate.words, sizeof(uint64) * predicate.count);
            out->form.words += predicate.count;
            distinct[out->form.count] = predicate;
            *slot = ++out->form.count;
        }
        names[fitting] = *slot - 1;
    }
    pfree(table.slots);
    pfree(distinct);
    return fitting;
}

int query_pieces(const RowView& queries, const SearchPredicates& predicates, RequestPiece pieces[most_query_pieces])
{
    int count = row_pieces(queries, pieces);
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

int search_pieces(SearchRequest* request, const RowView& queries, const SearchPredicates& predicates,
                  RequestPiece pieces[most_search_pieces])
{
    static_assert(sizeof(SearchRequest) % sizeof(uint64) == 0);
    describe_queries(queries, request);
    request->predicates = predicates.form;
    request->tids = predicates.tids != nullptr ? predicates.tids->number : no_tids;
    pieces[0] = {request, sizeof(*request)};
    return 1 + query_pieces(queries, predicates, pieces + 1);
}

}  // namespace pgwarp
