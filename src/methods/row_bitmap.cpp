// Versions of bitmaps, and the rows outside one.
#include "methods/row_bitmap.h"

#include <atomic>

namespace pgwarp
{

std::vector<std::uint32_t> rows_outside(RowBitmap bitmap, std::size_t count)
{
    std::vector<std::uint32_t> rows;
    for (std::size_t row = 0; row < count; ++row)
        if (!bit_is_set(bitmap, row)) rows.push_back(static_cast<std::uint32_t>(row));
    return rows;
}

std::uint64_t new_bitmap_version()
{
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace pgwarp
