// Packed rows in a reservation.
#include "methods/rows/packed_rows.h"

#include <algorithm>

#include "methods/rows/row_order.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_packed_bytes = std::size_t{1} << 43;

}  // namespace

PackedRows::PackedRows(std::size_t row_bytes)
    : row_bytes_(row_bytes), memory_(std::min(most_packed_bytes / row_bytes, most_packed_rows) * row_bytes)
{
}

void PackedRows::grow(std::size_t count)
{
    const std::lock_guard lock(mutex_);
    memory_.grow(count * row_bytes_);
}

void PackedRows::put_in_order(std::span<const std::uint32_t> order, ThreadPool& pool)
{
    if (std::ranges::is_sorted(order)) return;
    permute_rows(row(0), row_bytes_, {order.begin(), order.end()}, pool);
}

}  // namespace pgwarp
