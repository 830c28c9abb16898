// Half-precision storage of rows: fp16 of (x - mean) times a power-of-two scale. Centring and scaling keep the error
// small for data far from zero or of tiny or huge magnitude; scaling by a power of two loses no bits.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "numeric/distance.h"

namespace pgwarp
{

// The mean and the scale of an index's halves, with conversions of rows of mean.size() floats.
struct HalfCodec {
    std::vector<float> mean;  // [dimensions]
    float scale = 1.0F;       // power of two; stored = fp16((x - mean) * scale), finite for the training rows

    // Chooses mean and scale from rows [count][dimensions].
    static HalfCodec train(std::span<const float> rows, std::size_t dimensions);

    // A codec that stores halves unchanged.
    static HalfCodec identity(std::size_t dimensions) { return {std::vector<float>(dimensions, 0.0F), 1.0F}; }

    void encode(const float* row, half_bits* out) const;
    void decode(const half_bits* row, float* out) const;

    // Returns ||x - decode(encode(x))||, rounded up: subtracted from a distance, it gives a lower bound of the true
    // distance.
    float error(const float* row) const;
};

}  // namespace pgwarp
