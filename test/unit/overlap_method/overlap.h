// A method for tests, and the worked example of adding one: rows are lists of integers, the nearest have most in common
// with the query. The distance is -(the number of common words), or -(the sum of the products of their weights) where
// lists have weights; ties go by row. Exact.
#pragma once

#include "methods/method.h"
#include "overlap_method/description.h"

namespace pgwarp::test
{

// What a program registers beside the description (RegisteredMethod).
const MethodFactory& overlap_factory();

// The distance of two lists: row i of one view, row j of another.
double overlap_distance(const RowView& a, std::size_t i, const RowView& b, std::size_t j);

}  // namespace pgwarp::test
