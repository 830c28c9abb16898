#include "methods/row_bitmap.h"

#include <atomic>

namespace pgwarp
{

std::uint64_t new_bitmap_version()
{
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace pgwarp
