// What a searcher may do beside the contract of Searcher: find the nearest of the rows that pass a filter without a
// list of them, by tests of all rows.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

class TestsAllRows
{
public:
    virtual ~TestsAllRows() = default;
    // Whether search_passing() finds so many rows.
    virtual bool tests_all_rows(std::uint32_t k) const = 0;
    // Estimated float operations of a query, as Searcher::search_cost() counts them, where so many are tested at a
    // time; infinite where they share no work.
    virtual double shared_cost(std::size_t) const { return std::numeric_limits<double>::infinity(); }
    // results[i] gets the nearest of the rows that pass the query's filter, as search_exact() orders them, none dead.
    virtual void search_passing(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                                ThreadPool& pool) const = 0;
};

}  // namespace pgwarp
