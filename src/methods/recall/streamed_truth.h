// The true neighbours of a calibration's queries among rows that come in any order and are not kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/recall/nearest_by_tid.h"

namespace pgwarp
{

// Queries that are rows of the index, with their true neighbours: the parts of a CalibrationSample.
struct SampledQueries {
    std::vector<std::uint32_t> rows;
    std::vector<float> queries;
    std::vector<std::vector<std::uint32_t>> truth;
};

// Rows have the numbers of RowStream::append() until take().
class StreamedTruth
{
public:
    // tids: of the queries [count][dimensions], ascending. origin [dimensions]: a point amidst the rows; near the
    // origin scores from products lose less.
    StreamedTruth(Metric metric, std::vector<float> queries, std::span<const Tid> tids, std::vector<float> origin);

    // Compares rows [tids.size()][dimensions], numbered from `first` on. Overwrites them. Thread-safe.
    void compare(std::size_t first, std::span<const Tid> tids, std::span<float> rows, const CancelToken* cancel,
                 ThreadPool& pool);
    // Returns the queries that were among the rows, ascending, and their neighbours, whatever the order in which rows
    // came: of equally far rows the first by tid. order[i]: the number of row i. Call once.
    SampledQueries take(std::span<const std::uint32_t> order);

private:
    // Queries that are compared by one thread at a time.
    struct Group {
        std::mutex mutex;
        std::vector<NearestByTid> nearest;
        std::vector<float> tile;
    };
    void compare_tile(std::size_t group, std::size_t first, std::span<const std::uint64_t> tids, const float* rows,
                      const float* norms);
    std::vector<std::uint32_t> neighbours(std::size_t query, std::span<const std::uint32_t> place_of);

    Metric metric_;
    std::size_t dimensions_;
    std::vector<float> origin_;
    std::vector<float> queries_;       // [count][dimensions]
    std::vector<float> moved_;         // the same relative to the origin, where the metric allows
    std::vector<std::uint64_t> tids_;  // of the queries, as numbers
    std::vector<std::uint32_t> own_;   // of each query the number of its own row
    std::vector<Group> groups_;
};

}  // namespace pgwarp
