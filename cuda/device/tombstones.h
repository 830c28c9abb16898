// Tombstones on the device: the bitmap of dead rows, and the form of it that a method's kernels read. They are cached
// by the bitmap's version (methods/row_bitmap.h), so that searches do not compare or copy unchanged bitmaps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

struct Tombstones {
    DeviceArray<std::uint64_t> words;  // bit i: row i; empty where the method reads only `form`
    DeviceArray<std::byte> form;       // made from the words by the method; may be empty
    double share = 0;                  // dead rows over all rows

    const std::uint32_t* half_words() const { return reinterpret_cast<const std::uint32_t*>(words.data()); }
    template <class T>
    const T* form_as() const
    {
        return reinterpret_cast<const T*>(form.data());
    }
};

// Sends a bitmap. Rows beyond its end are alive. stream: must outlive the result. Waits for the copy.
Tombstones send_dead_rows(RowBitmap dead, std::size_t rows, MemoryPool& pool, const Context::Lease& stream);

}  // namespace pgwarp::cuda
