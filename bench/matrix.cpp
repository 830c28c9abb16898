#include "matrix.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace pgwarp::bench
{

namespace
{

std::vector<char> read_bytes(const std::string& path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw std::runtime_error("cannot open " + path);
    std::vector<char> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
        throw std::runtime_error("cannot read " + path);
    }
    return bytes;
}

bool has_extension(const std::string& path, const char* extension)
{
    return path.ends_with(extension);
}

std::size_t limited(std::size_t rows, std::size_t limit)
{
    return limit == 0 || rows < limit ? rows : limit;
}

// Rows that each begin with their int32 length, elements of type Stored: fvecs, bvecs, ivecs.
template <typename Stored, typename T>
Matrix<T> read_vecs(const std::string& path, std::size_t limit)
{
    const std::vector<char> bytes = read_bytes(path);
    std::int32_t columns = 0;
    if (bytes.size() >= sizeof(columns)) std::memcpy(&columns, bytes.data(), sizeof(columns));
    const std::size_t stride = sizeof(columns) + static_cast<std::size_t>(columns) * sizeof(Stored);
    if (columns < 1 || bytes.size() % stride != 0) throw std::runtime_error(path + " is not a file of vectors");
    Matrix<T> matrix{limited(bytes.size() / stride, limit), static_cast<std::size_t>(columns), {}};
    matrix.values.reserve(matrix.rows * matrix.columns);
    for (std::size_t i = 0; i < matrix.rows; ++i) {
        const char* row = bytes.data() + i * stride;
        if (std::memcmp(row, &columns, sizeof(columns)) != 0)
            throw std::runtime_error(path + ": rows differ in length");
        for (std::size_t j = 0; j < matrix.columns; ++j) {
            Stored value;
            std::memcpy(&value, row + sizeof(columns) + j * sizeof(Stored), sizeof(Stored));
            matrix.values.push_back(static_cast<T>(value));
        }
    }
    return matrix;
}

Matrix<float> bytes_matrix(const std::vector<char>& bytes, std::size_t header, std::size_t rows, std::size_t columns)
{
    const auto* values = reinterpret_cast<const unsigned char*>(bytes.data()) + header;
    return {rows, columns, std::vector<float>(values, values + rows * columns)};
}

Matrix<float> read_raw(const std::string& path, std::size_t limit, std::size_t columns)
{
    if (columns == 0) throw std::runtime_error(path + ": give the dimensions of raw files with --raw-dims");
    const std::vector<char> bytes = read_bytes(path);
    if (bytes.size() % columns != 0) throw std::runtime_error(path + " does not hold whole rows");
    return bytes_matrix(bytes, 0, limited(bytes.size() / columns, limit), columns);
}

std::size_t big_endian(const char* at)
{
    const auto* bytes = reinterpret_cast<const unsigned char*>(at);
    return std::size_t{bytes[0]} << 24 | std::size_t{bytes[1]} << 16 | std::size_t{bytes[2]} << 8 | bytes[3];
}

// The format of MNIST: 0, 0, type, rank, then the sizes; unsigned bytes only.
Matrix<float> read_idx(const std::string& path, std::size_t limit)
{
    const std::vector<char> bytes = read_bytes(path);
    if (bytes.size() < 8 || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] < 1) {
        throw std::runtime_error(path + " is not an idx file of unsigned bytes");
    }
    const auto rank = static_cast<std::size_t>(bytes[3]);
    const std::size_t header = 4 + 4 * rank;
    if (bytes.size() < header) throw std::runtime_error(path + " is cut short");
    std::size_t columns = 1;
    for (std::size_t i = 1; i < rank; ++i) columns *= big_endian(bytes.data() + 4 + 4 * i);
    const std::size_t rows = big_endian(bytes.data() + 4);
    if (bytes.size() != header + rows * columns)
        throw std::runtime_error(path + " has another size than its header says");
    return bytes_matrix(bytes, header, limited(rows, limit), columns);
}

}  // namespace

Matrix<float> read_vectors(const std::string& path, std::size_t limit, std::size_t raw_columns)
{
    if (has_extension(path, ".fvecs")) return read_vecs<float, float>(path, limit);
    if (has_extension(path, ".bvecs")) return read_vecs<std::uint8_t, float>(path, limit);
    if (has_extension(path, ".u8")) return read_raw(path, limit, raw_columns);
    if (has_extension(path, "ubyte")) return read_idx(path, limit);
    throw std::runtime_error(path + ": unknown format (known: .fvecs .bvecs .u8 *ubyte)");
}

Matrix<std::int32_t> read_ids(const std::string& path, std::size_t limit)
{
    return read_vecs<std::int32_t, std::int32_t>(path, limit);
}

void append_rows(Matrix<float>& to, const Matrix<float>& from)
{
    if (to.rows > 0 && to.columns != from.columns) throw std::runtime_error("files of different dimensions");
    to.columns = from.columns;
    to.rows += from.rows;
    to.values.insert(to.values.end(), from.values.begin(), from.values.end());
}

}  // namespace pgwarp::bench
