// A method for tests, and the worked example of adding one: rows are lists of integers, the nearest have most in common
// with the query. The distance is -(the number of common words), or -(the sum of the products of their weights) where
// lists have weights; ties go by row. Exact.
#pragma once

#include "methods/method.h"

namespace pgwarp::test
{

inline constexpr auto overlap_method = static_cast<Method>(15);

// What a program registers (RegisteredMethod).
extern const MethodDescription overlap_description;
const MethodFactory& overlap_factory();

// The distance of two lists: row i of one view, row j of another.
double overlap_distance(const RowView& a, std::size_t i, const RowView& b, std::size_t j);

}  // namespace pgwarp::test
