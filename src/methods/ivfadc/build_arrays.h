// The arrays of an ivfadc index in a build, on every device: names, shapes and order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/method.h"
#include "methods/rows/half_rows.h"
#include "numeric/product_quantizer.h"
#include "numeric/rotation.h"

namespace pgwarp
{

// Host memory, empty where the options have no such array or it is not made yet.
struct IvfadcArrays {
    IvfOptions options;
    std::size_t dimensions = 0;
    std::size_t rows = 0;
    std::vector<float> centroids;               // [lists][dimensions]
    Rotation rotation;                          // of residuals, before they are coded
    std::optional<ProductQuantizer> quantizer;  // with codes = pq
    HalfRows half;
    std::vector<std::uint32_t> list_of_row;
    BulkVector<std::uint8_t> codes;
    BulkVector<float> code_scale;
    std::span<const std::uint16_t> halves;  // in the rows' memory
    std::span<const float> vectors;         // in the rows' memory

    bool stores_half() const { return options.keeps_half() && !options.keeps_full(); }
    const float* centroid_of(std::size_t row) const
    {
        return centroids.data() + std::size_t{list_of_row[row]} * dimensions;
    }

    // Small arrays first.
    std::vector<ArrayShape> shapes() const;
    // The arrays without rows: the quantizers, by which rows are encoded.
    std::vector<ArrayShape> quantizer_shapes() const;
    // Copies bytes [offset, offset + out.size()) of an array. Throws BadRequest for one that is none of these.
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const;
    // Makes room for the arrays of quantizer_shapes(), to be filled by write_quantizer().
    void make_quantizer_room();
    // Takes a piece of such an array. Throws BadRequest for another array, and for one of another shape.
    void write_quantizer(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes);
    // Writes the floats of a row out of its stored form: a float vector, else a half vector, else bytes, whichever the
    // options keep. The row's list, and for bytes its scale, are known.
    void decode(std::size_t row, const std::byte* stored, float* out) const;
};

// Throws BadRequest unless the arrays that a search reads are there, in the shapes of an index with rows.
void require_ivfadc_arrays(std::span<const ArrayShape> arrays, const IvfOptions& options, std::size_t rows,
                           std::size_t lists, std::size_t dimensions);

}  // namespace pgwarp
