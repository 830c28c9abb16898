// Vectors like those of text embedding models, where no real ones are at hand.
#pragma once

#include <cstdint>

#include "matrix.h"

namespace pgwarp::bench
{

struct Generated {
    Matrix<float> base;
    Matrix<float> queries;
};

// Rows of length 1: a centre out of rows / 100 (chosen with weight 1 / rank) plus noise, both Gaussian with variance 1
// / i along the i-th axis, then one random rotation. The same arguments give the same rows.
class EmbeddingSource
{
public:
    static constexpr std::size_t block_rows = 4096;  // of one sequence of random numbers

    // rows: of the table, which set the number of centres.
    EmbeddingSource(std::size_t rows, std::size_t columns);

    // Writes rows [block * block_rows, ...) [count][columns], count at most block_rows. Thread-safe.
    void make_block(std::size_t block, std::size_t count, float* out) const;

private:
    std::size_t columns_;
    std::vector<float> centres_;   // [centres][columns]
    std::vector<double> weights_;  // sums of the weights of the first centres
    std::vector<float> axes_;      // [columns][columns]: the axes of the rotation
};

// Queries are drawn like rows and are no rows.
Generated generate_embeddings(std::size_t rows, std::size_t columns, std::size_t queries);

// The blocks from which queries are drawn: behind those of the rows.
inline std::size_t first_query_block(std::size_t rows)
{
    return (rows + EmbeddingSource::block_rows - 1) / EmbeddingSource::block_rows;
}

}  // namespace pgwarp::bench
