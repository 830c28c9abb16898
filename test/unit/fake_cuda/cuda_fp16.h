// Halves as the host sees them: what the code of cuda/ that is tested without a device knows of them.
#pragma once

#include <cstdint>

struct __half {
    std::uint16_t bits;
};

// Tests that want values of halves have kernels of their own.
inline float __half2float(__half value)
{
    return static_cast<float>(value.bits);
}
