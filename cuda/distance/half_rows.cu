#include <algorithm>
#include <cmath>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/wait.h"
#include "distance/half_rows.h"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned threads = 256;
constexpr unsigned sum_blocks = 264;
constexpr int stored_exponent = 12;  // the largest element is stored below 2^12: products stay far from float's limits

// Largest values over all rows, gathered as the bits of non-negative doubles, whose order is that of the values.
struct Extremes {
    unsigned long long deviation;
    unsigned long long element;
    unsigned long long residual;
    unsigned long long stored_norm;
    unsigned long long largest_norm;
    unsigned long long smallest_norm;
};

__device__ void raise(unsigned long long& extreme, double value)
{
    atomicMax(&extreme, static_cast<unsigned long long>(__double_as_longlong(value)));
}

double value_of(unsigned long long bits)
{
    double value = 0;
    static_assert(sizeof(value) == sizeof(bits));
    std::copy_n(reinterpret_cast<const std::byte*>(&bits), sizeof(bits), reinterpret_cast<std::byte*>(&value));
    return value;
}

// The rows [begin, end) of one launch.
struct RowPiece {
    std::uint32_t begin;
    std::uint32_t end;
};

// partial[block][d] += sum of dimension d over the block's rows of the piece.
__global__ void sum_columns(const float* rows, RowPiece piece, std::uint32_t dimensions, double* partial)
{
    for (std::uint32_t d = threadIdx.x; d < dimensions; d += blockDim.x) {
        double sum = piece.begin == 0 ? 0 : partial[std::size_t{blockIdx.x} * dimensions + d];
        for (std::uint32_t row = piece.begin + blockIdx.x; row < piece.end; row += gridDim.x) {
            sum += rows[std::size_t{row} * dimensions + d];
        }
        partial[std::size_t{blockIdx.x} * dimensions + d] = sum;
    }
}

__global__ void finish_mean(const double* partial, std::uint32_t count, std::uint32_t dimensions, float* mean)
{
    const std::uint32_t d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= dimensions) return;
    double sum = 0;
    for (unsigned block = 0; block < sum_blocks; ++block) sum += partial[std::size_t{block} * dimensions + d];
    mean[d] = static_cast<float>(sum / count);
}

// One warp a row: elements, deviations from the mean (null: zero) and norms.
__global__ void measure_rows(const float* rows, RowPiece piece, std::uint32_t dimensions, const float* mean,
                             Extremes* extremes)
{
    const unsigned lane = threadIdx.x % 32;
    double element = 0;
    double deviation = 0;
    double largest = 0;
    double smallest = INFINITY;
    for (std::uint32_t row = piece.begin + blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; row < piece.end;
         row += gridDim.x * (blockDim.x / 32)) {
        double square = 0;
        for (std::uint32_t d = lane; d < dimensions; d += 32) {
            const double value = rows[std::size_t{row} * dimensions + d];
            element = fmax(element, fabs(value));
            if (mean != nullptr) deviation = fmax(deviation, fabs(value - mean[d]));
            square += value * value;
        }
        const double norm = sqrt(warp_sum(square));
        largest = fmax(largest, norm);
        smallest = fmin(smallest, norm);
    }
    element = warp_largest(element);
    deviation = warp_largest(deviation);
    if (lane != 0) return;
    raise(extremes->element, element);
    raise(extremes->deviation, deviation);
    raise(extremes->largest_norm, largest * (1 + 1e-12));
    atomicMin(&extremes->smallest_norm, static_cast<unsigned long long>(__double_as_longlong(smallest * (1 - 1e-12))));
}

// One warp a position of the piece.
__global__ void encode_rows(RowOrder order, const float* rows, std::uint32_t dimensions,
                            std::uint32_t padded_dimensions, RowPiece piece, const float* mean, double scale,
                            bool with_norms, __half* halves, float* penalties, Extremes* extremes)
{
    const unsigned lane = threadIdx.x % 32;
    double worst = 0;
    double largest = 0;
    for (std::uint32_t position = piece.begin + blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; position < piece.end;
         position += gridDim.x * (blockDim.x / 32)) {
        const std::uint32_t row = order.row_of(position);
        double residual = 0;
        double square = 0;
        for (std::uint32_t d = lane; d < padded_dimensions; d += 32) {
            __half stored = __float2half_rn(0);
            if (row < order.rows && d < dimensions) {
                const double exact = (double{rows[std::size_t{row} * dimensions + d]} - mean[d]) * scale;
                stored = __double2half(exact);
                const double kept = __half2float(stored);
                residual += (exact - kept) * (exact - kept);
                square += kept * kept;
            }
            halves[std::size_t{position} * padded_dimensions + d] = stored;
        }
        residual = warp_sum(residual);
        square = warp_sum(square);
        worst = fmax(worst, residual);
        largest = fmax(largest, square);
        if (lane == 0) {
            penalties[position] = row >= order.rows ? INFINITY : with_norms ? static_cast<float>(0.5 * square) : 0.0F;
        }
    }
    if (lane != 0) return;
    raise(extremes->residual, sqrt(worst) * (1 + 1e-12));
    raise(extremes->stored_norm, sqrt(largest) * (1 + 1e-12));
}

__global__ void plain_penalties(RowOrder order, std::uint32_t padded_positions, float* penalties)
{
    const std::uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position < padded_positions) penalties[position] = order.row_of(position) < order.rows ? 0.0F : INFINITY;
}

__global__ void mark_dead_rows(RowOrder order, std::uint32_t padded_positions, const float* penalties,
                               const std::uint64_t* dead, float* out)
{
    const std::uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= padded_positions) return;
    const std::uint32_t row = order.row_of(position);
    const bool gone = row >= order.rows || ((dead[row / 64] >> (row % 64)) & 1U) != 0;
    out[position] = gone ? INFINITY : penalties[position];
}

// The power of two that brings `largest` just below 2^stored_exponent.
__host__ __device__ double scale_for(double largest)
{
    if (!(largest > 0)) return 1;
    int exponent = 0;
    (void)frexp(largest, &exponent);
    return ldexp(1.0, stored_exponent - exponent);
}

// Two sums and two maxima over a block, all at once.
struct Reduction {
    double sums[2];
    double maxima[2];
};

__device__ Reduction block_reduce(Reduction own)
{
    __shared__ Reduction warps[32];
    for (double& sum : own.sums) sum = warp_sum(sum);
    for (double& maximum : own.maxima) maximum = warp_largest(maximum);
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
    __syncthreads();
    Reduction all = warps[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) {
        for (int i = 0; i < 2; ++i) {
            all.sums[i] += warps[warp].sums[i];
            all.maxima[i] = fmax(all.maxima[i], warps[warp].maxima[i]);
        }
    }
    return all;
}

struct QueryShape {
    RowBounds bounds;
    double largest_element;
    std::uint32_t dimensions;
    std::uint32_t padded_dimensions;
};

// Whether all scores of a query stay far below float's limit.
__device__ bool stays_finite(const QueryShape& shape, const QueryBound& bound, double largest, float factor)
{
    constexpr double limit = 1e36;
    const double sum = (largest + shape.largest_element) * shape.dimensions;
    switch (shape.bounds.kind) {
        case ScoreKind::half_l2:
        case ScoreKind::half_dot:
            return bound.norm * shape.bounds.norm < limit && factor > 0 && factor < limit;
        case ScoreKind::float_l2:
            return sum * (largest + shape.largest_element) < limit;
        case ScoreKind::float_dot:
            return bound.own_norm * shape.bounds.largest_norm < limit;
        case ScoreKind::float_l1:
            return sum < limit;
    }
    return false;
}

__global__ void prepare(QueryShape shape, const float* mean, const float* queries, const std::uint32_t* ids,
                        std::uint32_t first, PreparedQueries prepared)
{
    let_next_start();
    const std::uint32_t slot = blockIdx.x;
    const bool used = slot < prepared.count;
    const std::uint32_t id = !used ? first : ids != nullptr ? ids[slot] : first + slot;
    const float* given = queries + std::size_t{used || ids == nullptr ? id : ids[0]} * shape.dimensions;
    // A thread reads only those elements of the copy that it has written, so there is no barrier.
    float* copy = prepared.copies != nullptr ? prepared.copies + std::size_t{slot} * shape.dimensions : nullptr;
    const float* query = copy != nullptr ? copy : given;
    const bool centred = shape.bounds.kind == ScoreKind::half_l2;
    const bool half = centred || shape.bounds.kind == ScoreKind::half_dot;
    double own = 0;
    double mean_dot = 0;
    double element = 0;
    double deviation = 0;
    for (std::uint32_t d = threadIdx.x; used && d < shape.dimensions; d += blockDim.x) {
        const float own_element = given[d];
        if (copy != nullptr) copy[d] = own_element;
        const double value = own_element;
        own += value * value;
        element = fmax(element, fabs(value));
        if (half) mean_dot += value * mean[d];
        deviation = fmax(deviation, fabs(centred ? value - mean[d] : value));
    }
    for (std::uint32_t d = threadIdx.x; !used && copy != nullptr && d < shape.dimensions; d += blockDim.x) copy[d] = 0;
    const Reduction measured = block_reduce({{own, mean_dot}, {element, deviation}});
    own = measured.sums[0];
    mean_dot = measured.sums[1];
    element = measured.maxima[0];
    deviation = measured.maxima[1];

    // Queries of l2 take the rows' scale, unless a half would overflow.
    double scale = scale_for(deviation);
    if (centred && (deviation == 0 || scale > shape.bounds.scale)) scale = shape.bounds.scale;
    const double target = centred ? shape.bounds.scale : 1.0;  // the space of the bound
    double residual = 0;
    double square = 0;
    for (std::uint32_t d = threadIdx.x; half && d < shape.padded_dimensions; d += blockDim.x) {
        __half stored = __float2half_rn(0);
        if (used && d < shape.dimensions) {
            const double exact = (double{query[d]} - (centred ? double{mean[d]} : 0.0)) * scale;
            stored = __double2half(exact);
            const double kept = __half2float(stored);
            residual += (exact - kept) * (exact - kept);
            square += kept * kept;
        }
        prepared.halves[std::size_t{slot} * shape.padded_dimensions + d] = stored;
    }
    const Reduction kept_and_lost = block_reduce({{residual, square}, {0, 0}});
    residual = kept_and_lost.sums[0];
    square = kept_and_lost.sums[1];
    if (threadIdx.x != 0) return;
    QueryBound bound;
    bound.own_norm = sqrt(own) * (1 + 1e-12);
    bound.norm = half ? sqrt(square) / scale * target : bound.own_norm;
    bound.residual = half ? sqrt(residual) / scale * target * (1 + 1e-12) : 0;
    bound.mean_dot = mean_dot;
    const float factor = half ? static_cast<float>(target / scale) : 1.0F;
    prepared.bounds[slot] = bound;
    prepared.factors[slot] = used ? factor : 0.0F;
    prepared.floats[slot] = query;
    prepared.usable[slot] = used && stays_finite(shape, bound, element, factor) ? 1 : 0;
    if (prepared.zeroed == nullptr) return;
    for (std::uint32_t i = 0; i < 3; ++i) prepared.zeroed[i * prepared.padded + slot] = 0;
}

bool is_half(ScoreKind kind)
{
    return kind == ScoreKind::half_l2 || kind == ScoreKind::half_dot;
}

// launch(piece) for all of [0, count), in pieces of some `elements`, each a launch of less than 2 ms.
template <class Launch>
void in_pieces(std::uint32_t count, std::uint32_t dimensions, std::size_t elements, const Launch& launch)
{
    const std::size_t step = std::max<std::size_t>(1, elements / dimensions);
    for (std::size_t begin = 0; begin < count; begin += step) {
        launch(RowPiece{static_cast<std::uint32_t>(begin),
                        static_cast<std::uint32_t>(std::min<std::size_t>(count, begin + step))});
    }
}

constexpr std::size_t launch_elements = std::size_t{1} << 29;

void make_mean(MemoryPool& pool, const float* rows, ScoredRows& made, cudaStream_t stream)
{
    const std::uint32_t dimensions = made.dimensions;
    DeviceArray<double> partial(pool, std::size_t{sum_blocks} * dimensions, "column sums", stream);
    // A thread sums a column, so with few dimensions the number of rows bounds the time of a launch.
    in_pieces(made.order.rows, std::max(dimensions, 512U), launch_elements / 2, [&](RowPiece piece) {
        sum_columns<<<sum_blocks, threads, 0, stream>>>(rows, piece, dimensions, partial.data());
        check_launch("column sums");
    });
    made.mean = DeviceArray<float>(pool, dimensions, "mean row", stream);
    finish_mean<<<(dimensions + threads - 1) / threads, threads, 0, stream>>>(partial.data(), made.order.rows,
                                                                              dimensions, made.mean.data());
    check_launch("mean row");
}

}  // namespace

ScoredRows make_scored_rows(MemoryPool& pool, Metric metric, ScoreKind kind, const float* rows, std::uint32_t count,
                            std::uint32_t dimensions, cudaStream_t stream)
{
    ScoredRows made;
    made.dimensions = dimensions;
    made.padded_dimensions = round_up(dimensions, dimension_multiple);
    made.order = make_row_order(count, is_half(kind) ? 1 : tile_rows);
    made.padded_positions = round_up(made.order.positions(), tile_rows);
    made.bounds.metric = metric;
    made.bounds.kind = kind;
    made.bounds.summation = summation_error(made.padded_dimensions);
    if (count == 0) return made;

    DeviceArray<Extremes> extremes(pool, 1, "row bounds", stream);
    Extremes found{};
    found.smallest_norm = 0x7FF0000000000000ULL;
    check(cudaMemcpyAsync(extremes.data(), &found, sizeof(found), cudaMemcpyHostToDevice, stream), "row bounds");
    if (is_half(kind)) make_mean(pool, rows, made, stream);
    in_pieces(count, made.padded_dimensions, launch_elements, [&](RowPiece piece) {
        measure_rows<<<1056, threads, 0, stream>>>(rows, piece, dimensions, made.mean.data(), extremes.data());
        check_launch("measuring rows");
    });
    read_back(&found, extremes.data(), sizeof(found), stream, "reading bounds");

    made.penalties = DeviceArray<float>(pool, made.padded_positions, "score penalties", stream);
    if (is_half(kind)) {
        made.bounds.scale = scale_for(value_of(found.deviation));
        made.halves =
            DeviceArray<__half>(pool, std::size_t{made.padded_positions} * made.padded_dimensions, "half rows", stream);
        in_pieces(made.padded_positions, made.padded_dimensions, launch_elements, [&](RowPiece piece) {
            encode_rows<<<1056, threads, 0, stream>>>(made.order, rows, dimensions, made.padded_dimensions, piece,
                                                      made.mean.data(), made.bounds.scale, kind == ScoreKind::half_l2,
                                                      made.halves.data(), made.penalties.data(), extremes.data());
            check_launch("encoding rows");
        });
    } else {
        plain_penalties<<<(made.padded_positions + threads - 1) / threads, threads, 0, stream>>>(
            made.order, made.padded_positions, made.penalties.data());
        check_launch("row penalties");
    }
    read_back(&found, extremes.data(), sizeof(found), stream, "reading bounds");
    made.largest_element = value_of(found.element);
    made.bounds.smallest_norm = value_of(found.smallest_norm);
    made.bounds.largest_norm = value_of(found.largest_norm);
    made.bounds.mean_norm = made.bounds.largest_norm;  // a mean is no longer than the longest row
    made.bounds.residual = value_of(found.residual);
    made.bounds.norm = is_half(kind) ? value_of(found.stored_norm) : made.bounds.largest_norm;
    return made;
}

void mark_dead(const ScoredRows& rows, const std::uint64_t* dead, float* out, cudaStream_t stream)
{
    mark_dead_rows<<<(rows.padded_positions + threads - 1) / threads, threads, 0, stream>>>(
        rows.order, rows.padded_positions, rows.penalties.data(), dead, out);
    check_launch("marking dead rows");
}

void prepare_queries(const ScoredRows& rows, const float* queries, const std::uint32_t* ids, std::uint32_t first,
                     const PreparedQueries& prepared, cudaStream_t stream)
{
    const QueryShape shape{rows.bounds, rows.largest_element, rows.dimensions, rows.padded_dimensions};
    prepare<<<prepared.padded, 128, 0, stream>>>(shape, rows.mean.data(), queries, ids, first, prepared);
    check_launch("preparing queries");
}

}  // namespace pgwarp::cuda
