// Tombstones on the device: the bitmap of dead rows as every method gets it, from which each makes what its kernels
// read. Kept by version (methods/row_bitmap.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

struct DeadBits {
    DeviceArray<std::uint64_t> words;  // bit i: row i; a bit for each row
    double share = 0;                  // of all rows

    const std::uint32_t* half_words() const { return reinterpret_cast<const std::uint32_t*>(words.data()); }
};

// Rows beyond `dead` are alive. stream: of the mirror; the words are freed in its order. Waits for the copy.
DeadBits send_dead_rows(RowBitmap dead, std::size_t rows, MemoryPool& pool, const Context::Lease& stream);

}  // namespace pgwarp::cuda
