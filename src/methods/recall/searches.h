// Recall measured by real searches: of any searcher, on queries whose true neighbours are known, along the efforts of
// its method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

// How many rows are held out of an index of so many, as queries that it does not hold.
std::size_t held_out_sample(std::size_t rows);

// How a method's searches depend on effort and k.
struct RecallRules {
    std::vector<std::int64_t> efforts;  // that are worth measuring, growing
    std::size_t steps_of_k = 2;         // measured between the k of two columns
    // The effort is the number of rows that a search keeps, or that it returns where these are more. A wider search
    // then holds the results of a narrower one, wide ones are measured with fewer queries, since their recall varies
    // less, and the curve ends where every recall is enough or a result that the backend ranks stops to improve. Else
    // each k is searched for by itself, and a column that found enough is not searched for again.
    bool effort_is_width = false;
};

struct RecallInput {
    const Searcher& searcher;
    std::size_t rows;                // that a search can find, but for the query's own
    std::span<const float> queries;  // [count][dimensions]
    // The nearest rows of each query that the index holds, nearest first.
    const std::vector<std::vector<std::uint32_t>>& truth;
    // Of each query its own row, which a search finds as well. Empty: the index holds no query.
    std::span<const std::uint32_t> own_rows = {};
    RowBitmap dead = {};  // rows that are not to be found
    // Where equal distances are common, of distances_of_truth(): a row that is no farther than the last true neighbour
    // that is asked for is as right. Empty: rows are told by their numbers.
    std::span<const std::vector<double>> distances = {};
};

Calibration measure_recall(const RecallInput& input, const RecallRules& rules, const BuildProgress& progress,
                           ThreadPool& pool);

// The k at which a column of Calibration::ks is measured: from the first that it serves to its own in so many steps,
// each larger by the same factor than the one before. Of all k that ask the engine for equally many results, the
// largest stands for them. None where all of them are at least as many as there are rows: such searches find all.
std::vector<std::uint32_t> measured_ks(std::size_t column, std::size_t rows, ResultKind kind, std::size_t steps);

// Loads a searcher with what a finished builder made, in pieces of at most `step` bytes.
void feed_searcher(const Builder& builder, Searcher& searcher, ThreadPool& pool, std::uint64_t step = 1U << 20);

}  // namespace pgwarp
