// Indexes of any method over a data set, in the engine's library: their builds, their searches, and what these find.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../described.h"
#include "data.h"
#include "device.h"
#include "methods/method.h"

namespace pgwarp::bench::pqtree
{

struct Index {
    const Device* device;
    IndexChoice choice;
    IndexShape shape{};
    std::unique_ptr<Builder> builder{};
    std::unique_ptr<Searcher> searcher{};
    Calibration calibration{};
    double build_s = 0;    // by the device's clock
    std::string phases{};  // "training tree .1; encoding rows .4; ..."
    double load_s = 0;
    std::size_t rows = 0;

    // Bytes of the memory that serves searches.
    double bytes_a_row() const { return static_cast<double>(searcher->memory_bytes()) / static_cast<double>(rows); }
    // The number of rows that the backend asks for, of which it ranks k by the table's own rows, unless the index
    // returns distances.
    std::uint32_t width(std::uint32_t k) const;
};

// choice: see IndexChoice. A large data set's rows are shared, and `refine` must be none then.
Index build_index(const std::string& choice, const DataSet& data, const Device& device, ThreadPool& pool);

struct Search {
    std::uint32_t k = 10;  // results
    std::int64_t effort = 0;
    ParameterList settings{};
    std::size_t batch = 0;  // queries at a time; 0: all
    std::size_t rounds = 3;
};

struct Found {
    std::vector<std::vector<std::uint32_t>> rows;  // of each query, in the order of the results
    double us = 0;  // of a query, by the device's clock: the median of the rounds; of single queries, the median of all
};

// Searches for all queries of the data; single queries are 250 at most, and rows of the others stay empty.
Found search(const Index& index, const DataSet& data, const Search& asked, ThreadPool& pool);

// The share of queries whose nearest row is among the first n results: R@n of the paper.
double nearest_within(const Found& found, const DataSet& data, std::size_t n);
// The share of the k nearest rows among the results, of queries that were searched.
double recall_of(const Found& found, const DataSet& data, std::size_t k);

}  // namespace pgwarp::bench::pqtree
