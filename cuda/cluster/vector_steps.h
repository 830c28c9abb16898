// The steps of builds of vectors on a device that need the rows alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/build_rows.h"
#include "device/error.h"
#include "methods/vector_build.h"

namespace pgwarp::cuda
{

// Steps: a method's steps on the CPU, a VectorBuildSteps<Arrays>.
template <class Steps, class Arrays>
class DeviceVectorSteps : public Steps
{
public:
    // Also makes the half vectors, for keep_halves().
    void train_half(const VectorBuildInput& input, Arrays& arrays) final
    {
        input.report("measuring half vectors", 0, arrays.rows);
        device_->train_half(input.shape, arrays.half);
    }
    std::vector<std::vector<std::uint32_t>> truth(const VectorBuildInput& input,
                                                  const std::vector<std::uint32_t>& sample) final
    {
        return device_->truth(input.metric(), sample, input.pool, input.progress.cancel);
    }
    // Overwrites the memory of the rows with the half vectors from the device.
    void keep_halves(const VectorBuildInput& input, Arrays& arrays) final
    {
        input.report("writing half vectors", 0, arrays.rows);
        arrays.halves = device_->keep_halves(input.pool);
    }

protected:
    explicit DeviceVectorSteps(Context& context) : context_(context) {}
    // name: as for BuildRows. more: bytes that the build keeps beside rows and halves. The half vectors come last: a
    // build without room for them fails before it trains, not afterwards.
    void begin_rows(const VectorBuildInput& input, const char* name, bool makes_halves, std::size_t more)
    {
        device_ = std::make_unique<BuildRows>(context_, name);
        const std::size_t element = sizeof(float) + (makes_halves ? sizeof(std::uint16_t) : 0);
        if (!context_.pool().has_room(input.vectors().size() * element + more)) throw DeviceOutOfMemory();
        device_->begin(input.rows, input.shape.dimensions);
    }

    Context& context_;
    std::unique_ptr<BuildRows> device_;
};

}  // namespace pgwarp::cuda
