// Metrics as the command lines of benchmarks name them.
#pragma once

#include <stdexcept>
#include <string>

#include "numeric/metric.h"

namespace pgwarp
{

// Throws std::runtime_error for another name.
inline Metric metric_named(const std::string& name)
{
    if (name == "l2") return Metric::l2;
    if (name == "ip") return Metric::inner_product;
    if (name == "cosine") return Metric::cosine;
    if (name == "l1") return Metric::l1;
    throw std::runtime_error("unknown metric " + name);
}

}  // namespace pgwarp
