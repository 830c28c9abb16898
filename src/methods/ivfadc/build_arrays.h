// What a build of ivfadc leaves to be stored, whatever device it ran on: the arrays' names, shapes and order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "methods/ivfadc/ivfadc.h"
#include "methods/method.h"
#include "numeric/rotation.h"

namespace pgwarp
{

// Views of a builder's memory, empty where the options keep no such array.
struct IvfadcArrays {
    const IvfOptions& options;
    std::size_t rows;
    std::size_t dimensions;
    std::span<const float> centroids;
    const Rotation& rotation;
    std::span<const float> codebooks;
    std::span<const float> half_mean;
    std::span<const float> half_scale;
    std::span<const std::uint32_t> list_of_row;
    std::span<const std::uint8_t> codes;
    std::span<const std::uint16_t> halves;
    std::span<const float> vectors;
    std::span<const float> code_scale;

    // Small arrays first.
    std::vector<ArrayShape> shapes() const;
    // Copies bytes [offset, offset + out.size()) of an array. Throws BadRequest for one that is none of these.
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const;
};

// Throws BadRequest unless the array that a rotation of so many dimensions is kept in is there.
void require_rotation(std::span<const ArrayShape> arrays, std::size_t dimensions);

}  // namespace pgwarp
