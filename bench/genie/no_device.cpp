// Of a program without CUDA.
#include "counter.h"

namespace pgwarp::bench::genie
{

std::vector<std::unique_ptr<Counter>> device_counters()
{
    return {};
}

}  // namespace pgwarp::bench::genie
