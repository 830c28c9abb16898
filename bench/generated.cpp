#include "generated.h"

#include <Eigen/Dense>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

namespace pgwarp::bench
{

namespace
{

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::uint64_t seed = 20260101;

Rows gaussian(std::size_t rows, std::size_t columns, std::mt19937_64& random)
{
    std::normal_distribution<float> normal;
    Rows out(rows, columns);
    for (Eigen::Index i = 0; i < out.size(); ++i) out.data()[i] = normal(random);
    return out;
}

// A random orthogonal matrix.
Rows rotation(std::size_t columns, std::mt19937_64& random)
{
    return Rows(Eigen::HouseholderQR<Rows>(gaussian(columns, columns, random)).householderQ());
}

// Numbers of centres, the first the most frequent.
std::vector<std::size_t> draw_centres(std::size_t rows, std::size_t centres, std::mt19937_64& random)
{
    std::vector<double> weights(centres);
    for (std::size_t i = 0; i < centres; ++i) weights[i] = 1.0 / static_cast<double>(i + 1);
    std::discrete_distribution<std::size_t> choose(weights.begin(), weights.end());
    std::vector<std::size_t> out(rows);
    for (std::size_t& centre : out) centre = choose(random);
    return out;
}

// Turns all rows and makes them of length 1, by all cores.
void turn(Rows& all, const Rows& rotation)
{
    constexpr Eigen::Index step = 4096;
    std::atomic<Eigen::Index> next = 0;
    const auto work = [&] {
        for (Eigen::Index begin = next.fetch_add(step); begin < all.rows(); begin = next.fetch_add(step)) {
            auto some = all.middleRows(begin, std::min(step, all.rows() - begin));
            some = (some * rotation).eval().rowwise().normalized();
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
}

Matrix<float> rows_of(const Rows& from, std::size_t begin, std::size_t count)
{
    const float* first = from.data() + begin * static_cast<std::size_t>(from.cols());
    const auto columns = static_cast<std::size_t>(from.cols());
    return {count, columns, std::vector<float>(first, first + count * columns)};
}

}  // namespace

Generated generate_embeddings(std::size_t rows, std::size_t columns, std::size_t queries)
{
    std::mt19937_64 random(seed);
    const std::size_t centres = std::max<std::size_t>(1, rows / 100);
    const Rows centre = gaussian(centres, columns, random);
    const std::vector<std::size_t> chosen = draw_centres(rows + queries, centres, random);
    Rows all = gaussian(rows + queries, columns, random);
    Eigen::RowVectorXf scale(columns);
    for (std::size_t i = 0; i < columns; ++i)
        scale[static_cast<Eigen::Index>(i)] = 1.0F / std::sqrt(static_cast<float>(i + 1));
    for (Eigen::Index i = 0; i < all.rows(); ++i) {
        all.row(i) = (all.row(i) + centre.row(static_cast<Eigen::Index>(chosen[static_cast<std::size_t>(i)])))
                         .cwiseProduct(scale);
    }
    turn(all, rotation(columns, random));
    return {rows_of(all, 0, rows), rows_of(all, rows, queries)};
}

}  // namespace pgwarp::bench
