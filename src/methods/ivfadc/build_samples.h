// The samples of a build of ivfadc and the training of its lists, the same on every device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/ivfadc/ivfadc.h"
#include "numeric/kmeans.h"
#include "numeric/product_quantizer.h"
#include "numeric/sample.h"

namespace pgwarp
{

inline constexpr std::uint64_t build_seed = 0x70677761;
inline constexpr std::size_t rows_per_list = 40;      // of the sample that trains the lists
inline constexpr std::size_t rows_per_codeword = 48;  // of the sample that trains the codebooks
inline constexpr std::size_t list_iterations = 6;     // of the CPU's training of the lists

// The rows that train the codebooks.
inline std::vector<std::uint32_t> quantizer_sample(std::size_t rows)
{
    return sample_rows(rows, ProductQuantizer::codewords * rows_per_codeword, build_seed + 1);
}

// Returns the training of the lists; each device sets the number of iterations.
inline KMeansOptions list_training(const IvfOptions& options, Metric metric, const BuildProgress& progress)
{
    KMeansOptions training;
    training.clusters = options.lists;
    training.seed = build_seed;
    training.spherical = metric == Metric::cosine;
    training.balanced = true;
    training.cancel = progress.cancel;
    training.progress = [&progress](std::size_t done, std::size_t total) {
        progress.report("training lists", done, total);
    };
    return training;
}

// Returns the number of sample rows whose comparisons with all rows stay below a tenth of those of training and
// encoding on the CPU. rows > 0.
inline std::size_t calibration_sample(const IvfOptions& options, std::size_t rows)
{
    const std::size_t trained = list_iterations * rows_per_list * options.lists * options.lists / rows;
    return std::clamp<std::size_t>((options.lists + trained + 4 * ProductQuantizer::codewords) / 20, 100, 500);
}

}  // namespace pgwarp
