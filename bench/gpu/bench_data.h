// Rows and queries of the benchmarks of a device's search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness.h"
#include "numeric/parallel.h"

namespace pgwarp::bench
{

struct Data {
    std::size_t dimensions = 0;
    std::vector<float> base;
    std::vector<float> queries;
    std::size_t rows() const { return base.size() / dimensions; }
    std::size_t asked() const { return queries.size() / dimensions; }
};

inline std::vector<unsigned char> read_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Records of int32 length and that many bytes (bvecs) or floats (fvecs); or bytes alone (u8).
inline std::vector<float> read_vectors(const std::string& path, std::size_t dimensions)
{
    const std::vector<unsigned char> bytes = read_file(path);
    const std::size_t element = path.ends_with(".fvecs") ? 4 : 1;
    const std::size_t head = path.ends_with(".u8") ? 0 : 4;
    const std::size_t record = head + dimensions * element;
    std::vector<float> rows(bytes.size() / record * dimensions);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const unsigned char* at = bytes.data() + i / dimensions * record + head + i % dimensions * element;
        if (element == 1) {
            rows[i] = *at;
        } else {
            std::memcpy(&rows[i], at, 4);
        }
    }
    return rows;
}

// Orthogonal, by Gram-Schmidt on Gaussian rows.
inline std::vector<double> random_rotation(std::size_t n, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> rotation(n * n);
    for (double& value : rotation) value = normal(random);
    for (std::size_t i = 0; i < n; ++i) {
        double* row = rotation.data() + i * n;
        for (int pass = 0; pass < 2; ++pass) {
            for (std::size_t j = 0; j < i; ++j) {
                const double* other = rotation.data() + j * n;
                const double dot = std::inner_product(row, row + n, other, 0.0);
                for (std::size_t d = 0; d < n; ++d) row[d] -= dot * other[d];
            }
        }
        const double norm = std::sqrt(std::inner_product(row, row + n, row, 0.0));
        for (std::size_t d = 0; d < n; ++d) row[d] /= norm;
    }
    return rotation;
}

inline void rotate(std::vector<float>& rows, const std::vector<double>& rotation, std::size_t n, ThreadPool& pool)
{
    std::vector<float> transposed(n * n);
    for (std::size_t i = 0; i < n * n; ++i) transposed[i % n * n + i / n] = static_cast<float>(rotation[i]);
    pool.parallel_for(rows.size() / n, 256, [&](std::size_t first, std::size_t last) {
        std::vector<float> out(n);
        for (std::size_t row = first; row < last; ++row) {
            std::fill(out.begin(), out.end(), 0.0F);
            for (std::size_t j = 0; j < n; ++j) {
                const float value = rows[row * n + j];
                for (std::size_t i = 0; i < n; ++i) out[i] += value * transposed[j * n + i];
            }
            std::copy(out.begin(), out.end(), rows.begin() + static_cast<std::ptrdiff_t>(row * n));
        }
    });
}

// Rows around equally frequent centres; along axis i the widths are 1 / (1 + i / 6) of those along the first. Any block
// of rows is made without those before it.
class ClusteredRows
{
public:
    static constexpr std::size_t block = 4096;  // rows that share a random sequence

    ClusteredRows(std::size_t dimensions, std::size_t centres) : dimensions_(dimensions), centre_(centres * dimensions)
    {
        std::mt19937_64 random(7);
        std::normal_distribution<float> normal;
        for (float& value : centre_) value = normal(random);
    }
    // Writes rows of a block, which begins at row `first`.
    void write(std::size_t first, std::size_t count, unsigned seed, float* out) const
    {
        std::mt19937_64 own(seed * 1000003ULL + first);
        std::normal_distribution<float> noise;
        for (std::size_t row = 0; row < count; ++row) {
            const float* from = centre_.data() + own() % (centre_.size() / dimensions_) * dimensions_;
            for (std::size_t d = 0; d < dimensions_; ++d) {
                const float width = 1 / (1 + static_cast<float>(d) / 6);
                out[row * dimensions_ + d] = (from[d] + noise(own)) * width * 40;
            }
        }
    }

private:
    std::size_t dimensions_;
    std::vector<float> centre_;
};

inline std::vector<float> generate(std::size_t rows, std::size_t n, std::size_t centres, unsigned seed,
                                   ThreadPool& pool)
{
    const ClusteredRows clusters(n, centres);
    std::vector<float> out(rows * n);
    constexpr std::size_t block = ClusteredRows::block;
    pool.parallel_for((rows + block - 1) / block, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t first = begin * block; first < std::min(end * block, rows); first += block)
            clusters.write(first, std::min(block, rows - first), seed, out.data() + first * n);
    });
    return out;
}

inline Data load(const Arguments& arguments, ThreadPool& pool)
{
    Data data;
    data.dimensions = arguments.number("dimensions", 128);
    const std::string base = arguments.text("base", "");
    const std::string queries = arguments.text("queries", "10000");
    if (base.empty()) {
        const std::size_t rows = arguments.number("rows", 1000000);
        data.base = generate(rows, data.dimensions, rows / 200 + 1, 1, pool);
        data.queries = generate(std::stoull(queries), data.dimensions, rows / 200 + 1, 2, pool);
    } else {
        data.base = read_vectors(base, data.dimensions);
        const std::size_t most = arguments.number("rows", data.rows());
        data.base.resize(std::min(most, data.rows()) * data.dimensions);
        data.queries = read_vectors(queries, data.dimensions);
    }
    if (arguments.number("rotate", 1) != 0) {
        const std::vector<double> rotation = random_rotation(data.dimensions, 5);
        rotate(data.base, rotation, data.dimensions, pool);
        rotate(data.queries, rotation, data.dimensions, pool);
    }
    return data;
}

}  // namespace pgwarp::bench
