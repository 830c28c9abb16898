#include "generated.h"

#include <Eigen/Dense>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "numeric/distance.h"

namespace pgwarp::bench
{

namespace
{

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::uint64_t seed = 20260101;
constexpr std::size_t tile_rows = 256;

std::vector<float> gaussian(std::size_t count, std::mt19937_64& random)
{
    std::normal_distribution<float> normal;
    std::vector<float> out(count);
    for (float& value : out) value = normal(random);
    return out;
}

// A random orthogonal matrix.
std::vector<float> rotation(std::size_t columns, std::mt19937_64& random)
{
    const std::vector<float> values = gaussian(columns * columns, random);
    const auto side = static_cast<Eigen::Index>(columns);
    const Rows turned(Eigen::HouseholderQR<Rows>(Eigen::Map<const Rows>(values.data(), side, side)).householderQ());
    return {turned.data(), turned.data() + turned.size()};
}

std::vector<double> sums_of_weights(std::size_t centres)
{
    std::vector<double> sums(centres);
    double sum = 0;
    for (std::size_t i = 0; i < centres; ++i) sums[i] = sum += 1.0 / static_cast<double>(i + 1);
    return sums;
}

// Makes blocks of a matrix by all cores.
void make_rows(const EmbeddingSource& source, std::size_t first_block, Matrix<float>& out)
{
    constexpr std::size_t step = EmbeddingSource::block_rows;
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t block; (block = next++) * step < out.rows;) {
            const std::size_t first = block * step;
            source.make_block(first_block + block, std::min(step, out.rows - first), out.row(first).data());
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
}

}  // namespace

EmbeddingSource::EmbeddingSource(std::size_t rows, std::size_t columns) : columns_(columns)
{
    std::mt19937_64 random(seed);
    const std::size_t centres = std::max<std::size_t>(1, rows / 100);
    centres_ = gaussian(centres * columns, random);
    weights_ = sums_of_weights(centres);
    axes_ = rotation(columns, random);
}

void EmbeddingSource::make_block(std::size_t block, std::size_t count, float* out) const
{
    std::seed_seq words{seed, static_cast<std::uint64_t>(block)};
    std::mt19937_64 random(words);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<double> uniform(0, weights_.back());
    std::vector<float> scales(columns_);
    for (std::size_t d = 0; d < columns_; ++d) scales[d] = 1.0F / std::sqrt(static_cast<float>(d + 1));
    std::vector<float> straight(tile_rows * columns_);
    for (std::size_t first = 0; first < count; first += tile_rows) {
        const std::size_t rows = std::min(tile_rows, count - first);
        for (std::size_t i = 0; i < rows; ++i) {
            const auto chosen = std::ranges::upper_bound(weights_, uniform(random)) - weights_.begin();
            const std::size_t centre = std::min(static_cast<std::size_t>(chosen), weights_.size() - 1);
            for (std::size_t d = 0; d < columns_; ++d)
                straight[i * columns_ + d] = (normal(random) + centres_[centre * columns_ + d]) * scales[d];
        }
        float* const turned = out + first * columns_;
        score_tile(Metric::inner_product, straight.data(), rows, axes_.data(), nullptr, columns_, columns_, turned);
        for (std::size_t i = 0; i < rows; ++i) {
            float* const row = turned + i * columns_;
            const float length = std::sqrt(std::max(squared_norm(row, columns_), 1e-30F));
            for (std::size_t d = 0; d < columns_; ++d) row[d] /= length;
        }
    }
}

Generated generate_embeddings(std::size_t rows, std::size_t columns, std::size_t queries)
{
    const EmbeddingSource source(rows, columns);
    Generated out;
    out.base = {rows, columns, std::vector<float>(rows * columns)};
    out.queries = {queries, columns, std::vector<float>(queries * columns)};
    make_rows(source, 0, out.base);
    make_rows(source, first_query_block(rows), out.queries);
    return out;
}

}  // namespace pgwarp::bench
