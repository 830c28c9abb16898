// Of a program without CUDA.
#include "device.h"

namespace pgwarp::bench::pqtree
{

std::unique_ptr<Device> open_gpu()
{
    return nullptr;
}

}  // namespace pgwarp::bench::pqtree
