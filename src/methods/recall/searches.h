// Recall measured by real searches: of any searcher, on queries whose true neighbours are known, along the efforts of
// its method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

// Returns the number of rows that a build leaves out of an index of `rows` rows, as queries of its calibration.
std::size_t held_out_sample(std::size_t rows);

// Returns the numbers below `count` in an order of which every beginning is spread over all of them.
std::vector<std::uint32_t> spread_numbers(std::size_t count);

// Returns the mean of the shares that are measured, which are not negative.
double mean_of(std::span<const float> shares);

// How a method's searches depend on effort and k.
struct RecallRules {
    std::vector<std::int64_t> efforts;  // that are measured, ascending
    std::size_t steps_of_k = 2;         // measured between the k of two columns
    // The effort is the number of rows that a search keeps, or that it returns where these are more. A wider search
    // then includes the results of a narrower one. Larger efforts are measured with fewer queries, since their recall
    // varies less. The curve ends where all recalls are high, or where estimates stop improving. Where false, each k
    // has its own search, and a column with high recall is not searched again.
    bool effort_is_width = false;
    // Where the effort is no width: the effort from which on the curve of approximate searches ends when estimates stop
    // improving. 0: it does not end so.
    std::int64_t gains_from = 0;
};

struct RecallInput {
    const Searcher& searcher;
    std::size_t rows;                // that a search can find, without the query's own
    std::span<const float> queries;  // [count][dimensions]
    // Of each query the nearest rows of the index, nearest first.
    const std::vector<std::vector<std::uint32_t>>& truth;
    // Of each query its own row in the index. Empty: the index holds no query.
    std::span<const std::uint32_t> own_rows = {};
    RowBitmap dead = {};  // rows that searches leave out
    // From distances_of_truth(), where equal distances are common: a row no farther than the last true neighbour counts
    // as found. Empty: rows are compared by number.
    std::span<const std::vector<double>> distances = {};
};

Calibration measure_recall(const RecallInput& input, const RecallRules& rules, const BuildProgress& progress,
                           ThreadPool& pool);

// Returns the k at which a column of Calibration::ks is measured: `steps` steps of one factor from the smallest k of
// the column to its own. Of all k with an equal width, the number of rows that a search ranks for k rows, the largest
// is taken, whose recall is the lowest. Empty where every k is at least `rows`: such searches find all.
std::vector<std::uint32_t> measured_ks(std::size_t column, std::size_t rows,
                                       const std::function<std::size_t(std::uint32_t)>& width, std::size_t steps);

// Loads a searcher with the arrays of a finished builder, in pieces of at most `step` bytes.
void feed_searcher(const Builder& builder, Searcher& searcher, ThreadPool& pool, std::uint64_t step = 1U << 20);

}  // namespace pgwarp
