// The number of candidates for each wanted row that a search must rank where codes propose and vectors decide, so that
// almost none of the nearest rows by vectors are lost. It is measured on the mirror while it is loaded, as the
// calibration of the index assumes candidates without loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "methods/method.h"
#include "numeric/parallel.h"

namespace pgwarp::cuda::ivfadc
{

struct RefineFactors {
    // Candidates for 1, 10 and 100 wanted rows.
    double candidates[3] = {1, 10, 100};

    // The factor for any k: interpolated on logarithmic scales, and in proportion from 100 on.
    std::size_t of(std::size_t k) const;
};

// The i-th of `count` rows, spread evenly over `rows` rows, whose vectors serve as queries.
std::uint32_t sample_row(std::size_t i, std::size_t count, std::size_t rows);

// Searches for `queries` [count][dimensions], the vectors of sample_row(i, count, rows), with growing factors until at
// least `share` of the rows are found that a factor of 100 or more finds. The query's own row is left out.
RefineFactors measure_refine_factors(const Searcher& searcher, std::span<const float> queries, std::size_t count,
                                     std::size_t rows, std::size_t probes, double share, ThreadPool& pool);

}  // namespace pgwarp::cuda::ivfadc
