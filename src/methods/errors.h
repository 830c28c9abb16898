// What methods throw.
#pragma once

#include <new>
#include <stdexcept>

namespace pgwarp
{

// Thrown for requests that make no sense; becomes a clear error of that request alone.
struct BadRequest : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A device has too little memory for what is asked; the host may have enough.
struct DeviceOutOfMemory : std::bad_alloc {
    const char* what() const noexcept override { return "the device ran out of memory"; }
};

}  // namespace pgwarp
