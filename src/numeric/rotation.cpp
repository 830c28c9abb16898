// OPQ (Ge et al., Optimized Product Quantization): parametric initialisation, then alternating Procrustes steps.
#include "numeric/rotation.h"

#include <Eigen/Dense>
#include <algorithm>
#include <numeric>

#include "numeric/distance.h"
#include "numeric/hadamard.h"
#include "numeric/product_quantizer.h"

namespace pgwarp
{

namespace
{

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const Matrix>;

constexpr std::size_t small_chunk = 1024;

// Sum of outer products of rows, pieces summed in order.
Matrix covariance(const View& rows)
{
    const Eigen::RowVectorXf mean = rows.colwise().mean();
    Matrix sum = Matrix::Zero(rows.cols(), rows.cols());
    for (Eigen::Index i = 0; i < rows.rows(); i += small_chunk) {
        const Eigen::Index count = std::min<Eigen::Index>(small_chunk, rows.rows() - i);
        const Matrix centred = rows.middleRows(i, count).rowwise() - mean;
        sum.noalias() += centred.transpose() * centred;
    }
    return sum;
}

// Assign the principal directions to the parts so that the products of their variances become nearly equal.
Matrix parametric_rotation(const Matrix& covariance_matrix, const ProductQuantizer& quantizer)
{
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance_matrix.cast<double>());
    const auto dimensions = static_cast<std::size_t>(covariance_matrix.rows());
    std::vector<double> weight(quantizer.subquantizers(), 0.0);
    std::vector<std::size_t> filled(quantizer.subquantizers(), 0);
    Matrix rotation(covariance_matrix.rows(), covariance_matrix.cols());
    const double floor = std::max(1e-20, 1e-9 * static_cast<double>(solver.eigenvalues().maxCoeff()));
    for (std::size_t taken = 0; taken < dimensions; ++taken) {
        const auto from = static_cast<Eigen::Index>(dimensions - 1 - taken);
        std::size_t best = quantizer.subquantizers();
        for (std::size_t part = 0; part < quantizer.subquantizers(); ++part) {
            const std::size_t width = quantizer.part_begin(part + 1) - quantizer.part_begin(part);
            if (filled[part] < width && (best == quantizer.subquantizers() || weight[part] < weight[best])) best = part;
        }
        const std::size_t to = quantizer.part_begin(best) + filled[best]++;
        rotation.row(static_cast<Eigen::Index>(to)) = solver.eigenvectors().col(from).transpose().cast<float>();
        weight[best] += std::log(std::max<double>(solver.eigenvalues()[from], floor) / floor) + 1e-6;
    }
    return rotation;
}

std::size_t alternations(std::size_t dimensions)
{
    if (dimensions <= 256) return 6;
    if (dimensions <= 512) return 3;
    return dimensions <= 1024 ? 1 : 0;
}

// The orthogonal factor U V^T of matrix = U S V^T, computed as matrix (matrix^T matrix)^(-1/2): a symmetric
// eigenproblem, whose solver the parametric start needs too, instead of a singular value decomposition. Returns false
// for a nearly singular matrix.
bool nearest_rotation(const Eigen::MatrixXf& matrix, Matrix& rotation)
{
    const Eigen::MatrixXd wide = matrix.cast<double>();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(wide.transpose() * wide);
    const Eigen::VectorXd& squares = solver.eigenvalues();
    if (!(squares.minCoeff() > 1e-10 * squares.maxCoeff())) return false;
    const Eigen::MatrixXd& vectors = solver.eigenvectors();
    const Eigen::MatrixXd inverse_root =
        vectors * squares.cwiseSqrt().cwiseInverse().asDiagonal() * vectors.transpose();
    rotation = (wide * inverse_root).cast<float>();
    return true;
}

void rotate_rows(std::span<const float> rotation, std::size_t dimensions, std::span<const float> rows,
                 std::span<float> out, ThreadPool& pool)
{
    pool.parallel_for(rows.size() / dimensions, 256, [&](std::size_t first, std::size_t last) {
        // The tile kernel gives -(row . rotation row); the loop restores the sign.
        float* target = out.data() + first * dimensions;
        score_tile(Metric::inner_product, rows.data() + first * dimensions, last - first, rotation.data(), nullptr,
                   dimensions, dimensions, target);
        for (std::size_t i = 0; i < (last - first) * dimensions; ++i) target[i] = -target[i];
    });
}

// Parametric initialisation, then alternating Procrustes steps. Returns [dimensions][dimensions], row-major; rotated =
// R * x.
std::vector<float> train_rotation(std::span<const float> rows, std::size_t dimensions, std::size_t subquantizers,
                                  std::uint64_t seed, ThreadPool& pool, const CancelToken* cancel)
{
    const auto size = static_cast<Eigen::Index>(dimensions);
    const auto count = static_cast<Eigen::Index>(rows.size() / dimensions);
    Matrix rotation = Matrix::Identity(size, size);
    ProductQuantizer quantizer(dimensions, subquantizers);
    if (count > 1) {
        const View view(rows.data(), count, size);
        rotation = parametric_rotation(covariance(view), quantizer);
        std::vector<float> rotated(rows.size());
        std::vector<float> decoded(rows.size());
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(count) * subquantizers);
        for (std::size_t step = 0; step < alternations(dimensions); ++step) {
            if (cancel != nullptr) cancel->check();
            rotate_rows({rotation.data(), dimensions * dimensions}, dimensions, rows, rotated, pool);
            quantizer.train(rotated, seed + step, pool, cancel);
            quantizer.encode_rows(rotated, codes, pool);
            for (Eigen::Index i = 0; i < count; ++i)
                quantizer.decode(codes.data() + static_cast<std::size_t>(i) * subquantizers,
                                 decoded.data() + static_cast<std::size_t>(i) * dimensions);
            // The rotation that maps the rows most closely onto their decoded codes.
            const Eigen::MatrixXf cross = View(decoded.data(), count, size).transpose() * view;
            if (!nearest_rotation(cross, rotation)) break;
        }
    }
    return {rotation.data(), rotation.data() + dimensions * dimensions};
}

}  // namespace

Rotation::Rotation(std::size_t dimensions)
    : dimensions_(dimensions),
      matrix_(learnt(dimensions) ? dimensions * dimensions : 0),
      signs_(learnt(dimensions) ? 0 : HadamardPlan::rounds * dimensions)
{
}

Rotation::Rotation(std::span<const float> rows, std::size_t dimensions, std::size_t subquantizers, std::uint64_t seed,
                   ThreadPool& pool, const CancelToken* cancel)
    : dimensions_(dimensions)
{
    if (learnt(dimensions)) {
        matrix_ = train_rotation(rows, dimensions, subquantizers, seed, pool, cancel);
    } else {
        signs_ = draw_signs(dimensions, seed);
    }
}

void Rotation::apply(std::span<const float> rows, std::span<float> out, ThreadPool& pool) const
{
    if (signs_.empty()) return rotate_rows(matrix_, dimensions_, rows, out, pool);
    pool.parallel_for(rows.size() / dimensions_, 16, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) apply(rows.data() + i * dimensions_, out.data() + i * dimensions_);
    });
}

void Rotation::apply(const float* row, float* out) const
{
    if (signs_.empty()) {
        scores(Metric::inner_product, row, matrix_.data(), dimensions_, dimensions_, out);
        for (std::size_t d = 0; d < dimensions_; ++d) out[d] = -out[d];
    } else {
        std::copy_n(row, dimensions_, out);
        hadamard_rotate(signs_, out);
    }
}

}  // namespace pgwarp
