// Rows of an index stored as lists, in the arrays "list_offsets", "list_words" and, with weights, "list_weights". A
// merge appends to all three; offsets continue at the last one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protocol/rows.h"

namespace pgwarp
{

// Returns the shapes of the arrays of these rows. Offsets come first, because a loader needs them before the words.
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
    // Call after all pieces are written. Checks offsets and lists before anything reads by them; throws BadRequest for
    // lists that no index of the shape holds.
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
