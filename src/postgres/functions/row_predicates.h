// Predicates that rows make of their own values: in some filter columns, a row that passes equals the row.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/am/attribute_code.h"
#include "postgres/client/search_predicates.h"
#include "postgres/scan/heap_distance.h"

extern "C" {
#include "utils/array.h"
}

namespace pgwarp
{

struct RowPredicates {
    AttributeCoder coder;
    bool compared[most_filter_columns];
    uint32 words;  // of a predicate
};

// Chooses the filter columns of an index by their names. Raises an error where there is none, or no such column.
RowPredicates* open_row_predicates(Relation index, ::ArrayType* columns);

// Reads the codes of a row in a slot of the heap.
void read_row_codes(const RowPredicates& predicates, HeapReader* reader, TupleTableSlot* slot,
                    uint64 codes[most_filter_columns]);
// Whether the row has a value in each of the columns: NULL equals nothing.
bool makes_predicate(const RowPredicates& predicates, const uint64* codes);
// Writes the predicate of the row to words[predicates.words].
void make_row_predicate(const RowPredicates& predicates, const uint64* codes, uint64* words);

}  // namespace pgwarp
