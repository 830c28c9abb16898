#include "select/select.h"

#include <algorithm>
#include <stdexcept>

#include "device/error.h"
#include "select/kernels.h"

namespace pgwarp::cuda
{
namespace
{

using detail::SelectOperands;

struct Plan {
    SelectMethod method;
    int splits = 0;  // of the warp and block methods; 0: a warp for each row
    detail::GridPlan grid{};
    std::size_t bytes = 0;
};

bool many_rows(const SelectShape& shape)
{
    return shape.rows >= 16 * detail::multiprocessors();
}

// Blocks for each row: enough to fill the device with few rows, each with a part that is long enough to outweigh its
// start.
int splits_for(const SelectShape& shape, SelectMethod method)
{
    const auto splits = [&](std::int64_t blocks, std::int64_t shortest) {
        return static_cast<int>(
            std::clamp<std::int64_t>(std::min(blocks / shape.rows, shape.columns / shortest), 1, 1024));
    };
    if (method == SelectMethod::block)
        return splits(4 * detail::multiprocessors(), std::max<std::int64_t>(16 * shape.k, 16384));
    if (many_rows(shape)) return 0;
    // One block selects from the results of the parts: at most 8,192 of them.
    return std::min(splits(4 * detail::multiprocessors(), 2048),
                    static_cast<int>(std::max<std::int64_t>(1, 8192 / shape.k)));
}

SelectMethod choose(const SelectShape& shape)
{
    if (shape.k > detail::block_method_most) return SelectMethod::grid;
    if (shape.k <= detail::warp_method_most && shape.columns <= (shape.k <= 32 ? 32768 : 4096))
        return SelectMethod::warp;
    if (shape.k <= 32 && !many_rows(shape) && shape.rows < detail::multiprocessors()) return SelectMethod::warp;
    // One block for each row selects from the results of the parts. Where these are many, the grid method is faster.
    if (splits_for(shape, SelectMethod::block) * shape.k > 32768) return SelectMethod::grid;
    return SelectMethod::block;
}

Plan make_plan(const SelectShape& shape, SelectMethod method)
{
    if (shape.rows < 0 || shape.columns < 0 || shape.columns > std::int64_t{1} << 31 || shape.stride < shape.columns ||
        shape.k < 1 || shape.k > std::int64_t{1} << 31)
        throw std::invalid_argument("k-selection: shape outside its contract");
    Plan plan{method == SelectMethod::automatic ? choose(shape) : method};
    if (plan.method == SelectMethod::warp && shape.k > detail::warp_method_most) plan.method = SelectMethod::block;
    if (plan.method == SelectMethod::block && shape.k > detail::block_method_most) plan.method = SelectMethod::grid;
    if (plan.method == SelectMethod::grid) {
        plan.grid = detail::plan_grid(shape.rows, shape.columns, shape.k);
        plan.bytes = plan.grid.bytes;
        return plan;
    }
    plan.splits = splits_for(shape, plan.method);
    const auto partial = static_cast<std::size_t>(shape.rows * plan.splits * shape.k);
    if (plan.splits > 1) plan.bytes = partial * (sizeof(float) + sizeof(std::uint32_t));
    return plan;
}

void select_by(SelectMethod method, const SelectOperands& operands, int splits, cudaStream_t stream)
{
    if (method == SelectMethod::warp)
        detail::select_by_warps(operands, splits, stream);
    else
        detail::select_by_blocks(operands, splits, stream);
}

// Selects the k smallest of each part, then the k smallest of the parts' results.
void select_in_parts(const SelectOperands& operands, const Plan& plan, void* workspace, cudaStream_t stream)
{
    SelectOperands parts = operands;
    const std::int64_t columns = plan.splits * operands.k;
    parts.selected_values = static_cast<float*>(workspace);
    parts.selected_ids = reinterpret_cast<std::uint32_t*>(parts.selected_values + operands.rows * columns);
    select_by(plan.method, parts, plan.splits, stream);
    SelectOperands whole = operands;
    whole.values = parts.selected_values;
    whole.ids = parts.selected_ids;
    whole.columns = whole.stride = columns;
    select_by(plan.method, whole, 1, stream);
}

void select(const SelectOperands& operands, const SelectShape& shape, void* workspace, cudaStream_t stream,
            SelectMethod method)
{
    if (shape.rows == 0) return;
    const Plan plan = make_plan(shape, method);
    if (plan.method == SelectMethod::grid)
        detail::select_by_grid(operands, plan.grid, workspace, stream);
    else if (plan.splits > 1)
        select_in_parts(operands, plan, workspace, stream);
    else
        select_by(plan.method, operands, plan.splits, stream);
}

}  // namespace

int detail::multiprocessors()
{
    int device = 0, count = 0;
    check(cudaGetDevice(&device), "reading the current device");
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "reading a device property");
    return count;
}

std::size_t select_workspace_bytes(const SelectShape& shape, SelectMethod method)
{
    return shape.rows == 0 ? 0 : make_plan(shape, method).bytes;
}

void select_smallest(const float* values, const SelectShape& shape, float* selected_values,
                     std::uint32_t* selected_columns, void* workspace, cudaStream_t stream, SelectMethod method)
{
    select({values, nullptr, shape.rows, shape.columns, shape.stride, shape.k, selected_values, selected_columns},
           shape, workspace, stream, method);
}

void select_smallest_with_ids(const float* values, const std::uint32_t* ids, const SelectShape& shape,
                              float* selected_values, std::uint32_t* selected_ids, void* workspace, cudaStream_t stream,
                              SelectMethod method)
{
    select({values, ids, shape.rows, shape.columns, shape.stride, shape.k, selected_values, selected_ids}, shape,
           workspace, stream, method);
}

}  // namespace pgwarp::cuda
