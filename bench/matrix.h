// Rows of vectors in memory, and the file formats of common vector data sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pgwarp::bench
{

template <typename T>
struct Matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<T> values;

    std::span<const T> row(std::size_t i) const { return {values.data() + i * columns, columns}; }
    std::span<T> row(std::size_t i) { return {values.data() + i * columns, columns}; }
};

// Read at most `limit` rows (0 = all) of a file, by its extension: fvecs, bvecs, u8 (raw bytes of `raw_columns` a row),
// or idx of unsigned bytes (names that end in ubyte).
Matrix<float> read_vectors(const std::string& path, std::size_t limit, std::size_t raw_columns);

// Read ids: ivecs.
Matrix<std::int32_t> read_ids(const std::string& path, std::size_t limit);

// Append rows; the number of columns must agree.
void append_rows(Matrix<float>& to, const Matrix<float>& from);

}  // namespace pgwarp::bench
