// Scores of rows that are kept as halves: bounds and penalties are measured, the halves stay where they are.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device/error.h"
#include "device/wait.h"
#include "distance/half_rows.h"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned threads = 256;
constexpr unsigned blocks = 1056;
constexpr std::size_t launch_elements = std::size_t{1} << 29;

// The largest norms, as the bits of non-negative doubles, whose order is that of the values.
struct Norms {
    unsigned long long stored;   // of the halves
    unsigned long long decoded;  // of the rows that they stand for
};

double value_of(unsigned long long bits)
{
    double value = 0;
    std::copy_n(reinterpret_cast<const std::byte*>(&bits), sizeof(bits), reinterpret_cast<std::byte*>(&value));
    return value;
}

// One warp a position of [begin, end).
__global__ __launch_bounds__(threads) void measure_halves(GivenHalves given, std::uint32_t begin, std::uint32_t end,
                                                          bool with_norms, float* penalties, Norms* norms)
{
    const unsigned lane = threadIdx.x % 32;
    const double inverse = 1.0 / given.scale;
    double largest_stored = 0;
    double largest_decoded = 0;
    for (std::uint32_t position = begin + (blockIdx.x * threads + threadIdx.x) / 32; position < end;
         position += gridDim.x * (threads / 32)) {
        double stored = 0;
        double decoded = 0;
        for (std::uint32_t d = lane; position < given.count && d < given.dimensions; d += 32) {
            const double half = __half2float(given.rows[std::size_t{position} * given.dimensions + d]);
            const double value = half * inverse + given.mean[d];
            stored += half * half;
            decoded += value * value;
        }
        stored = warp_sum(stored);
        decoded = warp_sum(decoded);
        largest_stored = fmax(largest_stored, stored);
        largest_decoded = fmax(largest_decoded, decoded);
        if (lane == 0) {
            penalties[position] = position >= given.count ? INFINITY
                                  : with_norms            ? static_cast<float>(0.5 * stored)
                                                          : 0.0F;
        }
    }
    if (lane != 0) return;
    const auto raise = [](unsigned long long& norm, double square) {
        atomicMax(&norm, static_cast<unsigned long long>(__double_as_longlong(sqrt(square) * (1 + 1e-12))));
    };
    raise(norms->stored, largest_stored);
    raise(norms->decoded, largest_decoded);
}

}  // namespace

ScoredRows make_scored_halves(MemoryPool& pool, ScoreKind kind, const GivenHalves& given, cudaStream_t stream)
{
    // A row that is decoded in single precision is off by some units in the last place of its own and its half.
    constexpr double decoding = 0x1p-22;
    ScoredRows made;
    made.dimensions = made.padded_dimensions = given.dimensions;
    made.order = {given.count, 1, given.count, 1};
    made.padded_positions = round_up(given.count, tile_rows);
    made.bounds.metric = kind == ScoreKind::half_l2 ? Metric::l2 : Metric::inner_product;
    made.bounds.kind = kind;
    made.bounds.scale = given.scale;
    made.bounds.summation = summation_error(given.dimensions);
    if (given.count == 0) return made;
    const std::size_t kept = std::min(given.positions, made.padded_positions);
    made.halves = KeptArray<__half>(given.rows, kept * given.dimensions);
    made.mean = KeptArray<float>(given.mean, given.dimensions);
    made.penalties = DeviceArray<float>(pool, made.padded_positions, "score penalties", stream);
    DeviceArray<Norms> norms(pool, 1, "row bounds", stream);
    check(cudaMemsetAsync(norms.data(), 0, norms.bytes(), stream), "clearing bounds");
    const auto step = static_cast<std::uint32_t>(std::max<std::size_t>(launch_elements / given.dimensions, 1));
    for (std::uint32_t begin = 0; begin < made.padded_positions;
         begin += std::min(step, made.padded_positions - begin)) {
        const std::uint32_t end = begin + std::min(step, made.padded_positions - begin);
        measure_halves<<<blocks, threads, 0, stream>>>(given, begin, end, kind == ScoreKind::half_l2,
                                                       made.penalties.data(), norms.data());
        check_launch("measuring halves");
    }
    Norms found{};
    read_back(&found, norms.data(), sizeof(found), stream, "reading bounds");
    made.bounds.norm = value_of(found.stored);
    made.bounds.largest_norm = made.bounds.mean_norm = value_of(found.decoded);
    made.bounds.residual = decoding * (made.bounds.scale * made.bounds.largest_norm + made.bounds.norm);
    return made;
}

}  // namespace pgwarp::cuda
