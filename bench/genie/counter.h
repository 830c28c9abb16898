// Searches for the rows of largest count, which the experiments on match counts compare.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "methods/matchcount/match_count.h"
#include "numeric/parallel.h"
#include "part_sets.h"

namespace pgwarp::bench::genie
{

// Rows by count, descending. Rows are no_row where a way tells counts alone.
using Answer = std::vector<pgwarp::matchcount::CountedRow>;

struct BuildTimes {
    double build_s = 0;
    double transfer_s = 0;
};

// Of a batch, the stages of the paper's table 1. A stage that cannot be told from another is a part of match.
struct SearchTimes {
    double transfer_s = 0;
    double match_s = 0;
    double select_s = 0;
    double whole_s() const { return transfer_s + match_s + select_s; }
};

// Bytes a query.
struct CountMemory {
    double counters = 0;
    double tables = 0;
};

class Counter
{
public:
    virtual ~Counter() = default;
    virtual std::string name() const = 0;
    virtual std::string device() const = 0;  // cpu or cuda
    virtual bool serves(const PartSet&) const { return true; }
    // Makes the index of the first rows of a set, which outlives it.
    virtual BuildTimes build(const PartSet& set, std::size_t rows) = 0;
    // The k rows of largest count of each query; times are medians of `repeat` searches.
    virtual SearchTimes search(std::span<const std::vector<Item>> queries, std::uint32_t k, std::size_t repeat,
                               std::vector<Answer>& answers) = 0;
    // Of the last search.
    virtual CountMemory memory() const = 0;
    // The most queries that are tried at a time.
    virtual std::size_t most_queries() const = 0;
};

// The product's search, and the paper's CPU-Idx: an array of counts, and partial quick selection.
std::vector<std::unique_ptr<Counter>> host_counters(ThreadPool& pool);
// The product's search on a GPU by posting lists, and in the dense form, and the paper's c-PQ, with a block a range of
// rows and with a block a list: empty in a program without CUDA.
std::vector<std::unique_ptr<Counter>> device_counters();

}  // namespace pgwarp::bench::genie
