// The rows of an index as the lists that they came as, in the arrays "list_offsets", "list_words" and, with weights,
// "list_weights": for methods that keep them so. A merge appends to all three; offsets go on where they ended.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protocol/rows.h"

namespace pgwarp
{

// What a builder stores of lists: offsets first, so that a loader knows where rows are before their words come.
std::vector<ArrayShape> list_arrays(const RowView& rows);

// Copies bytes of one of these arrays. False when it is none of them. Throws BadRequest past its end.
bool read_list_array(const RowView& rows, const std::string& array, std::uint64_t offset, std::span<std::byte> out);

// The lists of a searcher, loaded.
class StoredLists
{
public:
    // Throws BadRequest unless the arrays are there, in shapes that fit each other and `shape`.
    StoredLists(const IndexShape& shape, std::span<const ArrayShape> arrays);

    // Takes a piece of one of the arrays. False when it is none of them. Throws BadRequest past its end.
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    // Once all pieces are there. Throws BadRequest for lists that no index of the shape holds: what pages say is
    // checked before anything is read by it.
    void finish_load() const;
    RowView rows() const;
    std::uint64_t memory_bytes() const;

private:
    const IndexShape shape_;
    std::vector<std::uint64_t> offsets_;
    std::vector<std::uint32_t> words_;
    std::vector<float> weights_;
};

}  // namespace pgwarp
