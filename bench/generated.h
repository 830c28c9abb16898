// Vectors like those of text embedding models, where no real ones are at hand.
#pragma once

#include "matrix.h"

namespace pgwarp::bench
{

struct Generated {
    Matrix<float> base;
    Matrix<float> queries;
};

// Rows of length 1: a centre out of rows / 100 (chosen with weight 1 / rank) plus noise, both Gaussian with variance 1
// / i along the i-th axis, then one random rotation. Queries are drawn alike and are no rows. The same arguments give
// the same rows.
Generated generate_embeddings(std::size_t rows, std::size_t columns, std::size_t queries);

}  // namespace pgwarp::bench
