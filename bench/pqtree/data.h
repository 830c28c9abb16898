// Rows, queries and true neighbours of the experiments: files of a folder (see bench/pqtree/run), or generated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device.h"
#include "methods/rows/row_buffer.h"
#include "numeric/metric.h"

namespace pgwarp::bench::pqtree
{

inline constexpr std::uint32_t true_neighbours = 100;  // of each query

struct DataSet {
    std::string name;
    Metric metric = Metric::l2;
    std::size_t dimensions = 0;
    std::size_t rows = 0;
    std::vector<float> base;     // [rows][dimensions], or empty
    std::vector<float> queries;  // [asked][dimensions]
    // Rows that are too many to be copied for a build: builds share them, and must not give their floats up.
    std::shared_ptr<RowBuffer> shared;
    std::vector<std::vector<std::uint32_t>> truth;  // the nearest rows of each query, nearest first

    std::size_t asked() const { return queries.size() / dimensions; }
    std::span<const float> query(std::size_t i) const { return std::span(queries).subspan(i * dimensions, dimensions); }
};

struct DataRequest {
    // sift, fashion; clustered (clusters of very different sizes, far apart); generated (clusters of 200 rows, near
    // each other); sift, fashion and clustered are also taken as directions: by ip or cosine.
    std::string name;
    Metric metric = Metric::l2;
    std::string folder;    // of files; empty: small generated stand-ins
    std::size_t rows = 0;  // at most; 0: all
    std::size_t queries = 1000;
    std::size_t dimensions = 96;  // of generated rows
};

// Throws std::runtime_error where files are missing.
bool has_data(const DataRequest& request);
DataSet load_data(const DataRequest& request, const Device& device, ThreadPool& pool);

// Generated rows that are not kept: use(rows, number of the first) is called for each piece of them, in order. Returns
// the data set without its rows.
DataSet pass_generated(const DataRequest& request, const Device& device, ThreadPool& pool,
                       const std::function<void(std::span<const float>, std::size_t)>& use);
// Whether generated rows are so many that they are shared or passed, and not copied.
bool are_many(std::size_t rows);

}  // namespace pgwarp::bench::pqtree
