// The search keys of a scan as a predicate of the engine (protocol/predicates.h).
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/client/search_predicates.h"

extern "C" {
#include "access/skey.h"
}

namespace pgwarp
{

struct FilterKeys {
    const uint64* words;  // the predicate; null where every row passes it
    uint32 word_count;
    bool none;            // no row passes: keys contradict each other, or are NULL
    bool recheck;         // rows that pass the predicate may fail the keys
    bool null_vectors;    // only rows pass whose vector is NULL
    bool placed_vectors;  // only rows pass whose vector is not NULL
};

// Reads the keys of a scan. Memory of the predicate is palloc'ed.
FilterKeys read_filter_keys(Relation index, const ScanKeyData* keys, int count);

// Whether a row with these attributes passes.
inline bool passes_keys(const FilterKeys& keys, const uint64* attributes)
{
    return keys.words == nullptr || passes(std::span(keys.words, keys.word_count), attributes);
}

inline QueryPredicate predicate_of(const FilterKeys& keys)
{
    return {keys.words, keys.word_count};
}

inline SearchPredicates predicates_of(const FilterKeys& keys)
{
    return predicate_of_all(keys.words, keys.word_count);
}

}  // namespace pgwarp
