// HDF5 files in the layout of ann-benchmarks: datasets train, test, and neighbors.
#pragma once

#include <string>

#include "matrix.h"

namespace pgwarp::bench
{

struct AnnFile {
    Matrix<float> base;
    Matrix<float> queries;
    Matrix<std::int32_t> neighbours;  // no rows when the file has none
};

// Reads at most this many rows and queries (0 = all).
AnnFile read_ann_file(const std::string& path, std::size_t rows, std::size_t queries);

}  // namespace pgwarp::bench
