// Calibration of a graph: recall along a schedule of ef_search, on rows that the graph does not hold yet. A build draws
// its edges without them, measures, and takes them in at the end.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

// How many rows are held out.
std::size_t held_out_sample(std::size_t rows);

struct GraphCalibration {
    const Searcher& searcher;  // of the graph without the rows that are queries
    std::size_t rows;
    std::size_t dimensions;
    Metric metric;
    std::span<const float> queries;
    // The nearest rows of each query that the graph holds, nearest first.
    const std::vector<std::vector<std::uint32_t>>& truth;
    RowBitmap dead = {};  // rows that are not to be found
    // Where equal distances are common: of each query those of its true neighbours. Who is no farther than the last of
    // them that are asked for is as right. Empty: rows are told by their numbers.
    std::span<const std::vector<double>> distances = {};

    Calibration run(const BuildProgress& progress, ThreadPool& pool) const;
};

// GraphCalibration::distances for rows of bits, empty for others. rows [count][dimensions], as the queries are.
std::vector<std::vector<double>> distances_of_truth(Metric metric, std::span<const float> rows, std::size_t dimensions,
                                                    std::span<const float> queries,
                                                    const std::vector<std::vector<std::uint32_t>>& truth);

}  // namespace pgwarp
