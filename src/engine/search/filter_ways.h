// The choice of a way for the queries of a predicate, by cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/filter/filter_index.h"
#include "engine/filter/tid_bitmap.h"
#include "engine/mirror/mirror.h"
#include "methods/method.h"

namespace pgwarp
{

// Costs of a query in each way, in float operations, of which searches do some 20 in a nanosecond.
struct WayCosts {
    double compare;
    double search;
};

// Queries of a batch: those with the predicate, which share a bitmap, and all, whose tests may share work. Only where
// both ways give the same rows may the choice depend on them.
struct Companions {
    std::size_t with_predicate = 1;
    std::size_t all = 1;
};

// terms: of the predicate; 0: the rows are named by a bitmap of addresses. query: a batch of one.
WayCosts costs_of(const Mirror& mirror, const PassCount& count, std::size_t terms, const SearchBatch& query,
                  Companions queries = {});

// Whether the rows that pass are compared: the way that costs less.
bool is_compared(const Mirror& mirror, const PassCount& count, std::size_t terms, const SearchBatch& query,
                 Companions queries = {});

// Whether so many rows pass that tests of all rows on a device take less time than a list.
bool is_tested(const Mirror& mirror, const PassCount& count);

// Whether the search tests the rows that it visits by predicates, or by a bitmap where rows are named by one. A device
// tests by predicates alone.
bool tests_rows(const Mirror& mirror, bool named);
// Whether the search may miss rows that pass, and doesn't tell.
bool may_miss(const Mirror& mirror, bool named);
// Searches that may find few rows on purpose are never completed.
bool may_find_few(const SearchBatch& batch);

std::size_t terms_of(std::span<const std::uint64_t> predicate);
// Whether the rows that pass are a stretch of an order, so that no list of them is made.
bool is_stretch(std::span<const std::uint64_t> predicate);

// Estimated float operations of a query with this predicate.
double filtered_cost(Mirror& mirror, std::span<const std::uint64_t> predicate, const SearchBatch& query);
// The same among the rows of a bitmap.
double named_cost(Mirror& mirror, const TidBitmap& tids, const SearchBatch& query);

}  // namespace pgwarp
