// How many candidates per row wanted a search must rank where codes propose and vectors decide, so that next to nothing
// of what the vectors would have chosen is lost. Measured on the mirror itself when it is loaded: the calibration of
// the index was measured, or computed, for candidates without loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "methods/method.h"
#include "numeric/parallel.h"

namespace pgwarp::cuda::ivfadc
{

struct RefineFactors {
    // Candidates for 1, 10 and 100 rows wanted.
    double candidates[3] = {1, 10, 100};

    // For any k: interpolated on logarithmic scales, from 100 on in proportion.
    std::size_t of(std::size_t k) const;
};

// The rows whose vectors serve as queries: `count` of `rows`, spread evenly.
std::uint32_t sample_row(std::size_t i, std::size_t count, std::size_t rows);

// Searches for `queries` [count][dimensions], the vectors of sample_row(i, count, rows), with growing factors until at
// least `share` of the rows are found that a hundred times as many candidates find; a row itself left out.
RefineFactors measure_refine_factors(const Searcher& searcher, std::span<const float> queries, std::size_t count,
                                     std::size_t rows, std::size_t probes, double share, ThreadPool& pool);

}  // namespace pgwarp::cuda::ivfadc
