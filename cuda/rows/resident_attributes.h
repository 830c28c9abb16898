// The attributes of the rows of an index on the device, sent when a search first asks for them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/context.h"
#include "methods/once.h"
#include "methods/row_filter.h"
#include "rows/sent_filters.h"

namespace pgwarp::cuda::rows
{

// Thread-safe.
class ResidentAttributes
{
public:
    // The context outlives this.
    explicit ResidentAttributes(Context& context) : context_(&context) {}

    // All filters have the same attributes of so many rows, which do not change. The first call waits for the copy.
    // Throws std::bad_alloc.
    AttributeView get(const RowFilter& filter, std::size_t rows);
    std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

private:
    Context* context_;
    std::optional<Context::Lease> owner_;  // of the array
    Once sent_;
    DeviceArray<std::uint64_t> codes_;
    std::vector<CodeSpan> spans_;
    std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace pgwarp::cuda::rows
