// Arrays of an index that a merge or a calibration is given in pieces.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "methods/arrays.h"

namespace pgwarp
{

inline bool is_named(const ArrayShape& array, const char* name)
{
    return std::strncmp(array.name, name, sizeof(array.name)) == 0;
}

// Takes a piece of an array, of which there are at most `most` rows, and makes room for the whole. Throws BadRequest
// for another type or width.
template <class Values>
void take_piece(Values& values, const ArrayShape& shape, ArrayType type, std::uint64_t width, std::uint64_t most,
                std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (shape.type != type || shape.width != width || shape.rows > most)
        throw BadRequest("array \"" + std::string(shape.name) + "\" has another shape than its index");
    if (values.size() != shape.rows * width) values.resize(shape.rows * width);
    write_piece(std::span(values), offset, bytes);
}

// Arrays that must be given whole, in pieces.
class GivenArrays
{
public:
    explicit GivenArrays(std::span<const ArrayShape> arrays)
    {
        for (const ArrayShape& array : arrays) given_.push_back({array, 0});
    }
    // Counts a piece; returns the name of its array, or null for an array that is none of these. Throws BadRequest for
    // another shape.
    const char* count(const ArrayShape& shape, std::size_t bytes)
    {
        for (Given& given : given_) {
            const ArrayShape& own = given.shape;
            if (!is_named(shape, own.name)) continue;
            require_array(std::span(&shape, 1), own.name, own.type, own.rows, own.width);
            given.bytes += bytes;
            return own.name;
        }
        return nullptr;
    }
    // Throws BadRequest for an array of which pieces are missing.
    void check_whole() const
    {
        for (const Given& given : given_) {
            if (given.bytes != given.shape.bytes())
                throw BadRequest("array \"" + std::string(given.shape.name) + "\" was not given whole");
        }
    }

private:
    struct Given {
        ArrayShape shape;
        std::uint64_t bytes;  // received
    };
    std::vector<Given> given_;
};

}  // namespace pgwarp
