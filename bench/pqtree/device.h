// Where indexes are built and searched: on the CPU, or on a GPU.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <span>

#include "methods/method.h"
#include "numeric/kmeans.h"

namespace pgwarp::bench::pqtree
{

class Device
{
public:
    virtual ~Device() = default;
    virtual const char* name() const { return "cpu"; }  // in tables
    virtual bool is_gpu() const { return false; }
    // A clock: of a CPU the time that the program computes, on all threads, since other programs share it.
    virtual double seconds() const
    {
        timespec time{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
    // Never null.
    virtual const MethodFactory* method(Method method) const { return find_method(method); }
    // nearest[i] = the centroid nearest to row i (L2); both are [..][width].
    virtual void assign(std::span<const float> rows, std::size_t width, std::span<const float> centroids,
                        std::span<std::uint32_t> nearest, ThreadPool& pool) const
    {
        assign_to_centroids(Metric::l2, rows, width, centroids, nearest, pool);
    }
};

// Null in a program without CUDA.
std::unique_ptr<Device> open_gpu();

}  // namespace pgwarp::bench::pqtree
