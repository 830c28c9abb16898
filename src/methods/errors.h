// Exceptions of methods.
#pragma once

#include <new>
#include <stdexcept>

namespace pgwarp
{

// Thrown for an invalid request; becomes an error of that request alone.
struct BadRequest : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Thrown when a device has too little memory; the host may have enough.
struct DeviceOutOfMemory : std::bad_alloc {
    const char* what() const noexcept override { return "the device ran out of memory"; }
};

}  // namespace pgwarp
