// Selection behind calibration's truth. The scores of a group of queries are written out; three passes over their
// digits (11, 11 and 10 bits) find the k-th smallest of each query, and a last pass collects the scores below it. Ties
// at the k-th score go to the lower rows.
#include "cluster/truth.h"

#include <algorithm>

#include "cluster/device_math.cuh"
#include "cluster/kmeans.h"
#include "cluster/row_products.h"
#include "device/error.h"
#include "device/wait.h"
#include "methods/recall/truth.h"
#include "select/order_bits.h"

namespace pgwarp::cuda
{

namespace
{

constexpr int threads = 1024;
constexpr int digits = 2048;
constexpr std::uint64_t most_score_bytes = std::uint64_t{4} << 30;
constexpr std::size_t launch_rows = std::size_t{1} << 17;  // rows of a launch, all of them read by each block

// The state of the search for a query's k-th smallest score.
struct Search {
    unsigned prefix;  // digits found so far, in place
    unsigned below;   // scores with smaller digits
};

struct Found {
    unsigned score;  // ordered bits
    unsigned row;
};

// The rows of one launch. Histograms and progress of a query are kept between launches.
struct Piece {
    std::size_t first;
    std::size_t end;
    bool last;
};

struct Pass {
    int shift;
    int bits;
};
constexpr Pass pass_of[3] = {{21, 11}, {10, 11}, {0, 10}};

// Counts the digits that may come next in a query's k-th smallest score; the block of the last piece chooses.
// histograms: [queries][digits].
__global__ __launch_bounds__(threads) void next_digit_kernel(const float* scores, std::size_t count, Piece piece,
                                                             unsigned k, Pass pass, unsigned* histograms,
                                                             Search* searches)
{
    __shared__ unsigned histogram[digits];
    const float* own = scores + blockIdx.x * count;
    unsigned* kept = histograms + blockIdx.x * std::size_t{digits};
    const Search search = searches[blockIdx.x];
    const int known = pass.shift + pass.bits;
    const unsigned mask = known == 32 ? 0 : ~0U << known;
    for (int i = threadIdx.x; i < digits; i += threads) histogram[i] = piece.first == 0 ? 0 : kept[i];
    __syncthreads();
#pragma unroll 4
    for (std::size_t i = piece.first + threadIdx.x; i < piece.end; i += threads) {
        const unsigned bits = order_of(own[i]);
        if ((bits & mask) == search.prefix) atomicAdd(&histogram[(bits >> pass.shift) & ((1U << pass.bits) - 1)], 1U);
    }
    __syncthreads();
    if (!piece.last) {
        for (int i = threadIdx.x; i < digits; i += threads) kept[i] = histogram[i];
        return;
    }
    if (threadIdx.x != 0) return;
    unsigned below = search.below;
    unsigned digit = 0;
    while (below + histogram[digit] < k) below += histogram[digit++];
    searches[blockIdx.x] = {search.prefix | (digit << pass.shift), below};
}

// Collects the scores below the k-th, then enough of those equal to it in row order: out [k] a query, unsorted.
// progress: [queries], the numbers of both that earlier launches took.
__global__ __launch_bounds__(threads) void collect_kernel(const float* scores, std::size_t count, Piece piece,
                                                          unsigned k, const Search* searches, uint2* progress,
                                                          Found* out)
{
    __shared__ unsigned taken;
    __shared__ unsigned equal_taken;
    __shared__ unsigned equal_of_warp[threads / 32];
    const int warp = threadIdx.x / 32;
    const unsigned earlier_lanes = (1U << (threadIdx.x % 32)) - 1;
    const float* own = scores + blockIdx.x * count;
    const Search search = searches[blockIdx.x];
    Found* found = out + blockIdx.x * std::size_t{k};
    if (threadIdx.x == 0) {
        taken = piece.first == 0 ? 0 : progress[blockIdx.x].x;
        equal_taken = piece.first == 0 ? 0 : progress[blockIdx.x].y;
    }
    __syncthreads();
    for (std::size_t first = piece.first; first < piece.end; first += threads) {
        const std::size_t i = first + threadIdx.x;
        const unsigned bits = i < piece.end ? order_of(own[i]) : ~0U;
        if (i < piece.end && bits < search.prefix) found[atomicAdd(&taken, 1U)] = {bits, static_cast<unsigned>(i)};
        const bool equal = i < piece.end && bits == search.prefix;
        if (__syncthreads_or(equal) == 0) continue;
        const unsigned votes = __ballot_sync(~0U, equal);
        if (threadIdx.x % 32 == 0) equal_of_warp[warp] = __popc(votes);
        __syncthreads();
        unsigned before = equal_taken + __popc(votes & earlier_lanes);
        for (int w = 0; w < warp; ++w) before += equal_of_warp[w];
        if (equal && before < k - search.below) found[search.below + before] = {bits, static_cast<unsigned>(i)};
        __syncthreads();
        if (threadIdx.x == 0)
            for (int w = 0; w < threads / 32; ++w) equal_taken += equal_of_warp[w];
    }
    __syncthreads();
    if (threadIdx.x == 0) progress[blockIdx.x] = make_uint2(taken, equal_taken);
}

// Puts the squared l2 distance in the place of each found score; a warp a row. Scores from products lose the
// differences of rows that are near each other and far from the origin. queries: [queries][dimensions], found:
// [queries][k].
__global__ __launch_bounds__(threads) void subtract_kernel(const float* queries, std::size_t count, const float* rows,
                                                           std::size_t dimensions, unsigned k, Found* found)
{
    const std::size_t place = (std::size_t{blockIdx.x} * threads + threadIdx.x) / 32;
    if (place >= count * k) return;
    const float* query = queries + place / k * dimensions;
    const float* row = rows + found[place].row * dimensions;
    float sum = 0;
    for (std::size_t d = threadIdx.x % 32; d < dimensions; d += 32) {
        const float difference = query[d] - row[d];
        sum += difference * difference;
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0U, sum, offset);
    if (threadIdx.x % 32 == 0) found[place].score = order_of(sum);
}

// Cuts the rows into launches of about 0.15 ms, because searches wait for their blocks.
template <class Launch>
void for_each_piece(std::size_t count, const Launch& launch)
{
    for (std::size_t first = 0; first < count; first += launch_rows) {
        const std::size_t end = std::min(first + launch_rows, count);
        launch(Piece{first, end, end == count});
    }
}

std::vector<std::uint32_t> neighbours(std::vector<Found> found, std::uint32_t self)
{
    std::sort(found.begin(), found.end(),
              [](const Found& a, const Found& b) { return a.score != b.score ? a.score < b.score : a.row < b.row; });
    std::vector<std::uint32_t> rows;
    for (const Found& one : found) {
        if (one.row != self && rows.size() < Calibration::ks[3]) rows.push_back(one.row);
    }
    return rows;
}

// The number of queries whose scores of all rows fit into a quarter of the memory left.
std::size_t queries_together(const MemoryPool& pool, std::size_t count)
{
    const std::uint64_t left = pool.budget() == 0 ? most_score_bytes * 4 : pool.budget() - pool.used();
    return std::clamp<std::size_t>(std::min(left / 4, most_score_bytes) / sizeof(float) / count, 1, 256);
}

}  // namespace

std::vector<std::vector<std::uint32_t>> calibration_truth(Context& context, Metric metric, const float* rows,
                                                          std::size_t count, std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel, cudaStream_t stream)
{
    std::vector<std::vector<std::uint32_t>> truth(sample.size());
    if (sample.empty() || count == 0) return truth;
    const auto k = static_cast<unsigned>(std::min<std::size_t>(Calibration::ks[3] + 1, count));
    const std::size_t step = std::min(queries_together(context.pool(), count), sample.size());
    constexpr const char* name = "build workspace";
    MemoryPool& memory = context.pool();
    DeviceArray<std::uint32_t> numbers(memory, sample.size(), name, stream);
    DeviceArray<float> queries(memory, sample.size() * dimensions, name, stream);
    DeviceArray<float> norms(memory, metric == Metric::l2 ? count : 0, name, stream);
    DeviceArray<float> scores(memory, step * count, name, stream);
    DeviceArray<Search> searches(memory, step, name, stream);
    DeviceArray<unsigned> histograms(memory, step * digits, name, stream);
    DeviceArray<uint2> progress(memory, step, name, stream);
    DeviceArray<Found> found(memory, sample.size() * k, name, stream);
    send(numbers.data(), sample.data(), numbers.bytes(), stream, "copying a sample");
    gather_rows(rows, dimensions, numbers.data(), sample.size(), queries.data(), stream);
    if (metric == Metric::l2) squared_norms(rows, count, dimensions, norms.data(), stream);
    for (std::size_t first = 0; first < sample.size(); first += step) {
        if (cancel != nullptr) cancel->check();
        const std::size_t here = std::min(step, sample.size() - first);
        score_rows(queries.data() + first * dimensions, here, rows, norms.data(), count, dimensions, scores.data(),
                   count, stream);
        check(cudaMemsetAsync(searches.data(), 0, searches.bytes(), stream), "clearing searches");
        for (const Pass pass : pass_of) {
            for_each_piece(count, [&](const Piece& piece) {
                next_digit_kernel<<<static_cast<unsigned>(here), threads, 0, stream>>>(
                    scores.data(), count, piece, k, pass, histograms.data(), searches.data());
                check_launch("next digit");
            });
        }
        for_each_piece(count, [&](const Piece& piece) {
            collect_kernel<<<static_cast<unsigned>(here), threads, 0, stream>>>(
                scores.data(), count, piece, k, searches.data(), progress.data(), found.data() + first * k);
            check_launch("collect neighbours");
        });
    }
    if (metric == Metric::l2) {
        const auto blocks = static_cast<unsigned>((found.size() * 32 + threads - 1) / threads);
        subtract_kernel<<<blocks, threads, 0, stream>>>(queries.data(), sample.size(), rows, dimensions, k,
                                                        found.data());
        check_launch("subtract rows");
    }
    std::vector<Found> host(found.size());
    read_back(host.data(), found.data(), found.bytes(), stream, "waiting for neighbours");
    pool.parallel_for(sample.size(), 4, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            const auto own = host.begin() + static_cast<std::ptrdiff_t>(q * k);
            truth[q] = neighbours({own, own + k}, sample[q]);
        }
    });
    return truth;
}

}  // namespace pgwarp::cuda
