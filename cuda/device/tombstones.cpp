#include "device/tombstones.h"

#include <algorithm>
#include <bit>

#include "device/error.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

Tombstones send_dead_rows(RowBitmap dead, std::size_t rows, MemoryPool& pool, const Context::Lease& stream)
{
    Tombstones bits;
    const std::size_t words = (rows + 63) / 64;
    const RowBitmap given = dead.first(std::min(dead.size(), words));
    bits.words = DeviceArray<std::uint64_t>(pool, words, "dead rows", stream);
    if (given.size() < words) {
        check(cudaMemsetAsync(bits.words.data(), 0, bits.words.bytes(), stream), "clearing dead rows");
    }
    send(bits.words.data(), given.data(), given.size_bytes(), stream, "sending dead rows");
    std::size_t count = 0;
    for (const std::uint64_t word : given) count += static_cast<std::size_t>(std::popcount(word));
    bits.share = rows > 0 ? static_cast<double>(count) / static_cast<double>(rows) : 0;
    wait_for(stream, "sending dead rows");
    return bits;
}

}  // namespace pgwarp::cuda
