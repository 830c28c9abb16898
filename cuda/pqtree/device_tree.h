// The tree and its lines on the device, in the layouts that kernels read (view.h).
#pragma once

#include "device/context.h"
#include "methods/pqtree/build_arrays.h"
#include "pqtree/view.h"

namespace pgwarp::cuda::pqtree
{

class DeviceTree
{
public:
    DeviceTree() = default;
    // Copies the tree and the lines of `arrays`, for searches by tree_metric(metric). Waits. The stream must outlive
    // the object. Throws std::bad_alloc for lines that are too long for floats.
    DeviceTree(Context& context, Metric metric, const TreeArrays& arrays, cudaStream_t stream);

    const TreeView& view() const { return view_; }
    // Of ListsView.
    float bias_step() const { return bias_step_; }
    std::uint64_t device_bytes() const
    {
        return spans_.bytes() + part_of_.bytes() + level1_.bytes() + level2_.bytes() + constants_.bytes();
    }

private:
    void load_levels(Context& context, const TreeArrays& arrays, cudaStream_t stream);
    void load_lines(Context& context, const TreeArrays& arrays, cudaStream_t stream);

    TreeView view_;
    float bias_step_ = 0;
    DeviceArray<LineSpan> spans_;
    DeviceArray<std::uint16_t> part_of_;
    DeviceArray<float> level1_;
    DeviceArray<float> level2_;
    DeviceArray<LineConstants> constants_;
};

}  // namespace pgwarp::cuda::pqtree
