// The arrays of a pqtree index in a build, on every device: names, shapes and order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/method.h"
#include "methods/pqtree/pqtree.h"
#include "methods/rows/stored_vectors.h"

namespace pgwarp
{

// The form in which rows are ranked again.
inline VectorForm form_of(const TreeOptions& options)
{
    if (options.keeps_full()) return VectorForm::full;
    return options.keeps_half() ? VectorForm::half : VectorForm::none;
}

// Host memory, empty where the options have no such array or it is not made yet.
struct TreeArrays {
    TreeOptions options;
    std::size_t dimensions = 0;
    std::size_t rows = 0;
    ProductTree tree;
    LineTable lines;
    HalfRows half;
    BulkVector<std::uint8_t> codes;         // [rows][options.code_bytes()]
    std::span<const std::uint16_t> halves;  // in the rows' memory
    std::span<const float> vectors;         // in the rows' memory

    // Small arrays first.
    std::vector<ArrayShape> shapes() const;
    // The arrays without rows, by which rows are encoded.
    std::vector<ArrayShape> quantizer_shapes() const;
    // Copies bytes [offset, offset + out.size()) of an array. Throws BadRequest for one that is none of these.
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const;
    // Makes room for the arrays of quantizer_shapes(), to be filled by write_quantizer().
    void make_quantizer_room();
    // Takes a piece of such an array; returns false for another. Throws BadRequest past its end.
    bool write_quantizer(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    // Checks the arrays of write_quantizer(). Throws BadRequest for impossible values.
    void check_quantizer();
};

// Throws BadRequest unless the arrays that a search reads are there, in the shapes of an index with rows.
void require_pqtree_arrays(std::span<const ArrayShape> arrays, const TreeOptions& options, std::size_t rows,
                           std::size_t dimensions);

}  // namespace pgwarp
