// Half-precision storage of rows on the device: mean, scale and largest error as src/numeric/half_codec.h defines them,
// and the stored values themselves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "numeric/half_codec.h"

namespace pgwarp::cuda
{

// Chooses mean and scale from rows, device [count][dimensions]. Waits for the device (a few numbers a dimension come
// back). The mean's last bit may differ from the CPU's: it is summed in another order.
HalfCodec train_half(Context& context, const float* rows, std::size_t count, std::size_t dimensions,
                     cudaStream_t stream);

// out[i] = codec.encode(rows[i]), bit for bit. *worst (device, cleared by the caller) becomes the largest
// codec.error(), as its bits. mean: device copy of codec.mean.
void encode_half(const float* rows, std::size_t count, const HalfCodec& codec, const float* mean, std::uint16_t* out,
                 std::uint32_t* worst, cudaStream_t stream);

}  // namespace pgwarp::cuda
