// The cost of comparing rows in the engine.
#pragma once

#include "postgres/client/connection.h"
#include "postgres/postgres_headers.h"

extern "C" {
#include "optimizer/optimizer.h"
}

namespace pgwarp
{

// The cost of comparing a row of `width` dimensions in the planner's units, on a CPU or, if the engine has one, a GPU.
inline Cost compare_cost(double width)
{
    constexpr double dimension_operators = 0.08;  // cpu_operator_cost of a dimension on a CPU
    constexpr double row_dimensions = 4.0;        // a row costs as much as these, besides
    constexpr double gpu_speed_up = 400.0;
    const double speed_up = engine_has_gpu() ? gpu_speed_up : 1.0;
    return (width + row_dimensions) * dimension_operators * cpu_operator_cost / speed_up;
}

}  // namespace pgwarp
