// Product quantizer with 8-bit codes (Jégou et al., Product Quantization for Nearest Neighbor Search; the Faiss paper,
// section 2.1). A vector is split into `subquantizers` parts, whose widths differ by at most one when subquantizers
// does not divide dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/parallel.h"

namespace pgwarp
{

class ProductQuantizer
{
public:
    static constexpr std::size_t codewords = 256;

    // Requires 1 <= subquantizers <= dimensions; otherwise throws std::invalid_argument.
    ProductQuantizer(std::size_t dimensions, std::size_t subquantizers);

    // Trains on residuals [count][dimensions]; with fewer than 256 rows codewords repeat. Throws Cancelled.
    void train(std::span<const float> rows, std::uint64_t seed, ThreadPool& pool, const CancelToken* cancel = nullptr);

    std::size_t dimensions() const { return dimensions_; }
    std::size_t subquantizers() const { return subquantizers_; }
    std::size_t part_begin(std::size_t part) const;  // first dimension of the part; part_begin(m) == dimensions

    // Flat codebooks: for part p, [256][width(p)] floats, one part after the other: 256 * dimensions floats in total.
    std::span<const float> codebooks() const { return codebooks_; }
    std::span<float> codebooks() { return codebooks_; }
    const float* codebook(std::size_t part) const { return codebooks_.data() + part_begin(part) * codewords; }

    void encode(const float* row, std::uint8_t* code) const;  // one row
    void encode_rows(std::span<const float> rows, std::span<std::uint8_t> codes, ThreadPool& pool) const;
    void decode(const std::uint8_t* code, float* row) const;

private:
    std::size_t dimensions_;
    std::size_t subquantizers_;
    std::vector<float> codebooks_;
};

}  // namespace pgwarp
