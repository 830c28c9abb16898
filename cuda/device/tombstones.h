// Tombstones on the device: the bitmap of dead rows, and the form of it that a method's kernels read. They are kept by
// the bitmap's version (methods/row_bitmap.h): no search compares or copies bitmaps that have not changed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

struct Tombstones {
    DeviceArray<std::uint64_t> words;  // bit i: row i; empty where the method reads the form alone
    DeviceArray<std::byte> form;       // made of the words by the method; may be empty
    double share = 0;                  // dead rows of all rows

    const std::uint32_t* half_words() const { return reinterpret_cast<const std::uint32_t*>(words.data()); }
    template <class T>
    const T* form_as() const
    {
        return reinterpret_cast<const T*>(form.data());
    }
};

// Sends a bitmap; rows beyond its end are alive. stream: outlives what is made. Waits for the copy.
Tombstones send_dead_rows(RowBitmap dead, std::size_t rows, MemoryPool& pool, const Context::Lease& stream);

}  // namespace pgwarp::cuda
