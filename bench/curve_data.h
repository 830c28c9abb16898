// Rows and queries of the curves of recall, and which rows are nearest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "methods/method.h"

namespace pgwarp::bench
{

struct CurveSource {
    std::vector<std::string> base;  // files, one after the other (see matrix.h); none = generated
    std::string query;
    std::string generated = "clustered";  // or embedding
    std::size_t dimensions = 128;         // of raw bytes and of generated rows
    std::size_t rows = 0;                 // 0 = all
    std::size_t queries = 1000;
    bool turned = false;  // by a fixed random orthogonal matrix: the same distances, without small integers
    Metric metric = Metric::l2;
};

struct CurveData {
    std::size_t dimensions = 0;
    std::vector<float> base;
    std::vector<float> queries;
    std::size_t rows() const { return base.size() / dimensions; }
    std::size_t asked() const { return queries.size() / dimensions; }
};

// Of length 1 where the metric is cosine. Throws std::runtime_error for files that can't be read.
//
// clustered: Gaussian clusters, 200 rows each on average but their weights fall as 1 / rank, so that the largest holds
// a tenth of all; along axis i a cluster is 1 / (1 + i / 6) wide, and centres lie 40 times as far apart. Queries are
// drawn like rows. embedding: see generated.h.
CurveData load_curve_data(const CurveSource& source, ThreadPool& pool);

// Row numbers of the k nearest of each query, by the complete method.
std::vector<std::vector<std::uint32_t>> nearest_of_all(const CurveData& data, Metric metric, std::uint32_t k,
                                                       ThreadPool& pool);

}  // namespace pgwarp::bench
