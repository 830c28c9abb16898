// All parts train together: one launch assigns the sample's rows in every part, one updates every part's codebook.
// Nearly as in src/numeric/kmeans.cpp: means in row order, empty codewords move to rows of the largest, a part whose
// labels hardly change is done.
#include <algorithm>
#include <vector>

#include "cluster/codeword_search.cuh"
#include "cluster/kmeans.h"
#include "cluster/product_parts.h"
#include "cluster/product_quantizer.h"
#include "device/error.h"
#include "device/wait.h"
#include "numeric/kmeans_rules.h"
#include "rows/gather.h"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t training_iterations = 8;
constexpr int assign_threads = 128;
constexpr int rows_per_thread = 2;
constexpr int update_threads = 1024;
constexpr int update_warps = update_threads / 32;
constexpr std::size_t launch_elements = std::size_t{1} << 26;  // of a launch over rows: 0.1 to 0.2 ms

struct TrainTask {
    const float* rows;  // scaled already
    std::size_t count;
    PartShape shape;
    float* codebooks;
    std::uint8_t* labels;    // [parts][count]
    std::uint32_t* members;  // [parts][count]
    std::uint32_t* changed;  // [parts]
    std::uint32_t* settled;  // [parts]
    std::uint64_t seed;
};

__global__ void magnitude_kernel(const float* values, std::size_t count, unsigned* largest)
{
    float high = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x) {
        high = fmaxf(high, fabsf(values[i]));
    }
    high = warp_largest(high);
    if (threadIdx.x % 32 == 0) atomicMax(largest, __float_as_uint(high));
}

__global__ void finish_magnitude_kernel(float* scale)
{
    *scale = power_of_two(min(120, max(-120, -exponent_of(*scale))));
}

__global__ void scale_kernel(const float* values, std::size_t count, const float* scale, bool inverse, float* out)
{
    const float factor = inverse ? 1.0F / *scale : *scale;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x) {
        out[i] = values[i] * factor;
    }
}

// first: [parts][256] row numbers.
__global__ void first_codewords_kernel(TrainTask task, const std::uint32_t* first)
{
    const int part = blockIdx.x;
    const int begin = task.shape.begin(part);
    const int width = task.shape.begin(part + 1) - begin;
    for (int at = threadIdx.x; at < codewords * width; at += blockDim.x) {
        const std::size_t row = first[part * codewords + at / width];
        task.codebooks[begin * codewords + at] = task.rows[row * task.shape.dimensions + begin + at % width];
    }
}

template <int padded>
__global__ __launch_bounds__(assign_threads) void assign_parts_kernel(TrainTask task, int first_part)
{
    __shared__ SharedCodebook<padded> book;
    const int part = first_part + static_cast<int>(blockIdx.y);
    if (task.settled[part] != 0) return;
    const int begin = task.shape.begin(part);
    const int width = task.shape.begin(part + 1) - begin;
    load_codebook(book, task.codebooks + begin * codewords, width, 1.0F);
    float values[rows_per_thread][padded];
    int code[rows_per_thread];
    std::size_t row[rows_per_thread];
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
        row[r] = (std::size_t{blockIdx.x} * rows_per_thread + r) * assign_threads + threadIdx.x;
        const float* from = task.rows + min(row[r], task.count - 1) * task.shape.dimensions + begin;
#pragma unroll
        for (int e = 0; e < padded; ++e) values[r][e] = e < width ? from[e] : 0.0F;
    }
    nearest_codewords(book, values, code);
    int changed = 0;
    std::uint8_t* labels = task.labels + part * task.count;
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
        bool differs = false;
        if (row[r] < task.count) {
            differs = labels[row[r]] != code[r];
            labels[row[r]] = static_cast<std::uint8_t>(code[r]);
        }
        changed += __syncthreads_count(differs);
    }
    if (threadIdx.x == 0 && changed != 0) atomicAdd(task.changed + part, static_cast<unsigned>(changed));
}

// Groups the rows of one part by codeword, in row order: each warp counts its share of the rows, then places it.
__device__ void group_members(const TrainTask& task, int part, unsigned (*places)[codewords], unsigned* begin)
{
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const std::uint8_t* labels = task.labels + part * task.count;
    const std::size_t share = (task.count + update_warps - 1) / update_warps;
    const std::size_t from = min(task.count, warp * share);
    const std::size_t to = min(task.count, from + share);
    for (int c = lane; c < codewords; c += 32) places[warp][c] = 0;
    __syncwarp();
    for (std::size_t i = from + lane; i < to; i += 32) atomicAdd(&places[warp][labels[i]], 1U);
    __syncthreads();
    if (threadIdx.x < codewords) {
        unsigned size = 0;
        for (int w = 0; w < update_warps; ++w) size += places[w][threadIdx.x];
        begin[threadIdx.x + 1] = size;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        begin[0] = 0;
        for (int c = 0; c < codewords; ++c) begin[c + 1] += begin[c];
    }
    __syncthreads();
    if (threadIdx.x < codewords) {
        unsigned at = begin[threadIdx.x];
        for (int w = 0; w < update_warps; ++w) {
            const unsigned size = places[w][threadIdx.x];
            places[w][threadIdx.x] = at;
            at += size;
        }
    }
    __syncthreads();
    std::uint32_t* members = task.members + part * task.count;
    for (std::size_t first = from; first < to; first += 32) {
        const std::size_t i = first + lane;
        const unsigned label = i < to ? labels[i] : codewords + lane;
        const unsigned peers = same_label(label);
        const unsigned before = __popc(peers & ((1U << lane) - 1));
        if (i < to) members[places[warp][label] + before] = static_cast<std::uint32_t>(i);
        __syncwarp();
        if (i < to && before == 0) places[warp][label] += __popc(peers);
        __syncwarp();
    }
    __syncthreads();
}

// A warp averages the rows of its codewords, lanes taking every 32nd row.
template <int padded>
__device__ void average_members(const TrainTask& task, int part, const unsigned* begin)
{
    const int first = task.shape.begin(part);
    const int width = task.shape.begin(part + 1) - first;
    const int lane = threadIdx.x % 32;
    const std::uint32_t* members = task.members + part * task.count;
    for (int c = threadIdx.x / 32; c < codewords; c += update_warps) {
        if (begin[c] == begin[c + 1]) continue;
        float sum[padded] = {};
        for (unsigned at = begin[c] + lane; at < begin[c + 1]; at += 32) {
            const float* row = task.rows + std::size_t{members[at]} * task.shape.dimensions + first;
#pragma unroll
            for (int e = 0; e < padded; ++e) sum[e] += e < width ? row[e] : 0.0F;
        }
        const auto size = static_cast<float>(begin[c + 1] - begin[c]);
#pragma unroll
        for (int e = 0; e < padded; ++e) {
            sum[e] = warp_sum(sum[e]);
            if (lane == 0 && e < width) task.codebooks[first * codewords + c * width + e] = sum[e] / size;
        }
    }
}

// Empty codewords move to rows of the largest. Returns how many moved.
__device__ unsigned fill_empty(const TrainTask& task, int part, const unsigned* begin, unsigned* by_size)
{
    __shared__ unsigned moves;
    const int first = task.shape.begin(part);
    const int width = task.shape.begin(part + 1) - first;
    if (threadIdx.x == 0) moves = codewords;
    if (threadIdx.x < codewords) {
        const unsigned size = begin[threadIdx.x + 1] - begin[threadIdx.x];
        unsigned rank = 0;
        for (unsigned c = 0; c < codewords; ++c) {
            const unsigned other = begin[c + 1] - begin[c];
            rank += other > size || (other == size && c < threadIdx.x) ? 1 : 0;
        }
        by_size[rank] = threadIdx.x;
    }
    __syncthreads();
    constexpr unsigned donors = codewords / 4;
    const auto size_at = [&](unsigned place) { return begin[by_size[place] + 1] - begin[by_size[place]]; };
    const unsigned t = threadIdx.x;
    const unsigned at = codewords - 1 - t;
    if (t < codewords && (size_at(at) != 0 || size_at(t % donors) < 2 || t % donors >= at)) atomicMin(&moves, t);
    __syncthreads();
    if (t < moves) {
        const unsigned from = by_size[t % donors];
        const std::size_t draw = pick_member(task.seed + part, from, at, size_at(t % donors));
        const std::size_t row = task.members[part * task.count + begin[from] + draw];
        for (int e = 0; e < width; ++e) {
            task.codebooks[first * codewords + by_size[at] * width + e] =
                task.rows[row * task.shape.dimensions + first + e];
        }
    }
    return moves;
}

template <int padded>
__global__ __launch_bounds__(update_threads) void update_parts_kernel(TrainTask task, int first_part)
{
    __shared__ unsigned places[update_warps][codewords];
    __shared__ unsigned begin[codewords + 1];
    const int part = first_part + static_cast<int>(blockIdx.x);
    if (task.settled[part] != 0) return;
    group_members(task, part, places, begin);
    average_members<padded>(task, part, begin);
    __syncthreads();
    const unsigned moved = fill_empty(task, part, begin, places[0]);
    if (threadIdx.x != 0) return;
    if (std::uint64_t{task.changed[part]} * 1000 < task.count && moved == 0) task.settled[part] = 1;
    task.changed[part] = 0;
}

template <int padded>
void train_narrow(const TrainTask& task, const CancelToken* cancel, cudaStream_t stream)
{
    constexpr std::size_t block_rows = assign_threads * rows_per_thread;
    const auto row_blocks = static_cast<unsigned>((task.count + block_rows - 1) / block_rows);
    // Parts of a launch of at most a millisecond, by the operations on a row.
    const int step = static_cast<int>(std::clamp<std::size_t>(
        (std::size_t{1} << 34) / (std::size_t(padded + 6) * codewords * task.count), 1, task.shape.parts));
    for (std::size_t iteration = 0; iteration < training_iterations; ++iteration) {
        if (cancel != nullptr) cancel->check();
        for (int first = 0; first < task.shape.parts; first += step) {
            const auto parts = static_cast<unsigned>(std::min(step, task.shape.parts - first));
            assign_parts_kernel<padded><<<dim3(row_blocks, parts), assign_threads, 0, stream>>>(task, first);
            check_launch("assign parts");
            update_parts_kernel<padded><<<parts, update_threads, 0, stream>>>(task, first);
            check_launch("update parts");
        }
    }
}

void train_wide(Context& context, const float* rows, std::size_t count, const PartShape& shape, std::uint64_t seed,
                float* codebooks, const CancelToken* cancel, cudaStream_t stream)
{
    const std::size_t widest = (shape.dimensions + shape.parts - 1) / shape.parts;
    DeviceArray<float> columns(context.pool(), count * widest, "cluster workspace", stream);
    for (int part = 0; part < shape.parts; ++part) {
        const int begin = shape.begin(part);
        const int width = shape.begin(part + 1) - begin;
        rows::copy_columns(rows, count, shape.dimensions, begin, width, columns.data(), stream);
        KMeansOptions options;
        options.clusters = codewords;
        options.iterations = training_iterations;
        options.seed = seed + part;
        options.cancel = cancel;
        train_kmeans(context, columns.data(), count, width, options, codebooks + begin * codewords, stream);
    }
}

}  // namespace

void magnitude_scale(const float* values, std::size_t count, float* scale, cudaStream_t stream)
{
    check(cudaMemsetAsync(scale, 0, sizeof(float), stream), "clearing a maximum");
    for (std::size_t first = 0; first < count; first += launch_elements) {
        const std::size_t here = std::min(launch_elements, count - first);
        const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(here / 4096, 1, 2048));
        magnitude_kernel<<<blocks, 256, 0, stream>>>(values + first, here, reinterpret_cast<unsigned*>(scale));
        check_launch("magnitudes");
    }
    finish_magnitude_kernel<<<1, 1, 0, stream>>>(scale);
    check_launch("largest magnitude");
}

void train_product_quantizer(Context& context, const float* rows, std::size_t count, const ProductQuantizer& shape,
                             std::uint64_t seed, float* codebooks, const CancelToken* cancel, cudaStream_t stream)
{
    const std::size_t values = count * shape.dimensions();
    const std::size_t words = codewords * shape.dimensions();
    if (count == 0) {
        check(cudaMemsetAsync(codebooks, 0, words * sizeof(float), stream), "clearing codebooks");
        return;
    }
    const PartShape parts(shape);
    const int widest = (parts.dimensions + parts.parts - 1) / parts.parts;
    if (widest > widest_part) return train_wide(context, rows, count, parts, seed, codebooks, cancel, stream);

    MemoryPool& pool = context.pool();
    constexpr const char* name = "cluster workspace";
    DeviceArray<float> scale(pool, 1, name, stream);
    DeviceArray<float> scaled(pool, values, name, stream);
    magnitude_scale(rows, values, scale.data(), stream);
    for (std::size_t at = 0; at < values; at += launch_elements) {
        scale_kernel<<<1024, 256, 0, stream>>>(rows + at, std::min(launch_elements, values - at), scale.data(), false,
                                               scaled.data() + at);
        check_launch("scale rows");
    }

    std::vector<std::uint32_t> first;
    for (int part = 0; part < parts.parts; ++part) {
        const std::vector<std::uint32_t> drawn = draw_rows(count, std::min<std::size_t>(count, codewords), seed + part);
        for (std::size_t c = 0; c < codewords; ++c) first.push_back(drawn[c % drawn.size()]);
    }
    DeviceArray<std::uint32_t> first_rows(pool, first.size(), name, stream);
    send(first_rows.data(), first.data(), first_rows.bytes(), stream, "copying row numbers");
    DeviceArray<std::uint8_t> labels(pool, parts.parts * count, name, stream);
    DeviceArray<std::uint32_t> members(pool, parts.parts * count, name, stream);
    DeviceArray<std::uint32_t> flags(pool, 2 * static_cast<std::size_t>(parts.parts), name, stream);
    check(cudaMemsetAsync(labels.data(), 0, labels.bytes(), stream), "clearing labels");
    check(cudaMemsetAsync(flags.data(), 0, flags.bytes(), stream), "clearing flags");
    const TrainTask task{scaled.data(), count,          parts,        codebooks,
                         labels.data(), members.data(), flags.data(), flags.data() + parts.parts,
                         seed};
    first_codewords_kernel<<<static_cast<unsigned>(parts.parts), 256, 0, stream>>>(task, first_rows.data());
    check_launch("first codewords");
    if (count > codewords) {
        if (widest <= 4) {
            train_narrow<4>(task, cancel, stream);
        } else if (widest <= 8) {
            train_narrow<8>(task, cancel, stream);
        } else if (widest <= 16) {
            train_narrow<16>(task, cancel, stream);
        } else {
            train_narrow<widest_part>(task, cancel, stream);
        }
    }
    scale_kernel<<<256, 256, 0, stream>>>(codebooks, words, scale.data(), true, codebooks);
    check_launch("scale codebooks");
}

}  // namespace pgwarp::cuda
