// Rows in an order in which neighbours are near each other.
#pragma once

#include <cstdint>
#include <vector>

#include "matrix.h"

namespace pgwarp::bench
{

// Numbers of rows, so that each half of them, each half of a half and so on is a cluster: they are cut in the middle of
// the direction in which they differ most.
std::vector<std::uint32_t> cluster_order(const Matrix<float>& rows);

}  // namespace pgwarp::bench
