#include "pqtree/encode.h"

#include <algorithm>
#include <cfloat>

#include "device/error.h"
#include "device/shared_memory.h"

namespace pgwarp::cuda::pqtree
{

namespace
{

constexpr int threads = 256;
constexpr int line_rows = 128;                             // rows of a block, a thread each
constexpr int few_line_rows = 32;                          // the same where shared memory is short
constexpr std::size_t launch_rows = std::size_t{1} << 16;  // some 0.1 ms

std::uint32_t blocks_for(std::size_t count)
{
    return static_cast<std::uint32_t>((count + threads - 1) / threads);
}

__global__ void start_leaves_kernel(CentroidRows groups, const float* centroids, std::uint32_t k2, float* leaves)
{
    const std::uint32_t c = blockIdx.x;
    const std::uint32_t begin = groups.begin[c];
    const std::uint64_t count = groups.begin[c + 1] - begin;
    for (std::size_t i = threadIdx.x; i < k2 * groups.width; i += threads) {
        const std::uint64_t leaf = i / groups.width;
        const std::size_t d = i % groups.width;
        const float* from = count == 0 ? centroids + c * groups.width
                                       : groups.rows + groups.members[begin + leaf * count / k2] * groups.width;
        leaves[(std::size_t{c} * k2 + leaf) * groups.width + d] = from[d];
    }
}

// A thread assigns a member to the nearest leaf of its centroid.
__global__ void label_members_kernel(CentroidRows groups, std::uint32_t k2, const float* leaves, std::uint32_t* labels)
{
    const std::uint32_t c = blockIdx.x;
    const std::uint32_t begin = groups.begin[c];
    const std::uint32_t count = groups.begin[c + 1] - begin;
    const std::uint32_t member = blockIdx.y * threads + threadIdx.x;
    if (member >= count) return;
    const float* row = groups.rows + groups.members[begin + member] * groups.width;
    const float* own = leaves + std::size_t{c} * k2 * groups.width;
    float least = FLT_MAX;
    std::uint32_t nearest = 0;
    for (std::uint32_t leaf = 0; leaf < k2; ++leaf) {
        float sum = 0;
        for (std::size_t d = 0; d < groups.width; ++d) {
            const float difference = row[d] - own[leaf * groups.width + d];
            sum += difference * difference;
        }
        if (sum < least) {
            least = sum;
            nearest = leaf;
        }
    }
    labels[begin + member] = nearest;
}

// A thread sums one dimension of the members of a leaf, in order.
__global__ void move_leaves_kernel(CentroidRows groups, std::uint32_t k2, const std::uint32_t* labels, float* leaves)
{
    const std::uint32_t c = blockIdx.x;
    const std::uint32_t leaf = blockIdx.y;
    const std::uint32_t begin = groups.begin[c];
    const std::uint32_t end = groups.begin[c + 1];
    for (std::size_t d = threadIdx.x; d < groups.width; d += blockDim.x) {
        float sum = 0;
        std::uint32_t count = 0;
        for (std::uint32_t i = begin; i < end; ++i) {
            if (labels[i] != leaf) continue;
            sum += groups.rows[groups.members[i] * groups.width + d];
            ++count;
        }
        if (count > 0) leaves[(std::size_t{c} * k2 + leaf) * groups.width + d] = sum / static_cast<float>(count);
    }
}

__global__ void write_leaves_kernel(const std::uint32_t* leaves, std::size_t count, std::uint32_t part, CodeOutput out)
{
    const std::size_t row = std::size_t{blockIdx.x} * threads + threadIdx.x;
    if (row >= count) return;
    std::uint8_t* code = out.codes + row * out.stride + 2 * part;
    code[0] = static_cast<std::uint8_t>(leaves[row]);
    code[1] = static_cast<std::uint8_t>(leaves[row] >> 8);
}

// Bytes of shared memory: distances [padded_level1][rows], and the lines of a line part.
std::size_t line_bytes(const TreeView& tree, int rows)
{
    return std::size_t{tree.padded_level1} * rows * sizeof(float) + line_room * sizeof(LineConstants);
}

// Adds to distances[c][own] the squared differences of up to `together` dimensions from `first` on.
template <std::uint32_t together, int Rows>
__device__ void add_distances(const TreeView& tree, const float* given, std::uint32_t first, std::uint32_t count,
                              bool fresh, float* distances)
{
    float x[together];
#pragma unroll
    for (std::uint32_t d = 0; d < together; ++d) x[d] = given[first + min(d, count - 1)];
    for (std::uint32_t quad = 0; quad < tree.padded_level1 / 4; ++quad) {
        float sums[4] = {};
#pragma unroll
        for (std::uint32_t d = 0; d < together; ++d) {
            if (d >= count) break;
            const float4 c =
                *reinterpret_cast<const float4*>(tree.level1 + std::size_t{first + d} * tree.padded_level1 + 4 * quad);
            sums[0] += (x[d] - c.x) * (x[d] - c.x);
            sums[1] += (x[d] - c.y) * (x[d] - c.y);
            sums[2] += (x[d] - c.z) * (x[d] - c.z);
            sums[3] += (x[d] - c.w) * (x[d] - c.w);
        }
#pragma unroll
        for (std::uint32_t i = 0; i < 4; ++i) {
            float& distance = distances[(4 * quad + i) * Rows + threadIdx.x];
            distance = fresh ? sums[i] : distance + sums[i];
        }
    }
}

// A block encodes Rows rows, a thread each: the distances to the centroids of a line part, and then the error on
// each line by equation 9. The lines are the same for all lanes, so each read of a distance is free of conflicts.
template <int Rows>
__global__ __launch_bounds__(Rows) void encode_lines_kernel(TreeView tree, const float* rows, std::size_t count,
                                                            CodeOutput out)
{
    extern __shared__ float distances[];  // [padded_level1][Rows]
    auto* lines = reinterpret_cast<LineConstants*>(distances + std::size_t{tree.padded_level1} * Rows);
    const std::size_t row = std::size_t{blockIdx.x} * Rows + threadIdx.x;
    const bool valid = row < count;
    const float* given = rows + (valid ? row : count - 1) * tree.dimensions;
    std::uint8_t* code = out.codes + row * out.stride + 2 * tree.parts;
    for (std::uint32_t part = 0; part < tree.line_parts; ++part) {
        const LineSpan span = tree.spans[part];
        __syncthreads();
        for (std::uint32_t i = threadIdx.x; i < tree.lines; i += Rows) lines[i] = tree.constants[part * tree.lines + i];
        for (std::uint32_t d = 0; d < span.width; d += 8)
            add_distances<8, Rows>(tree, given, span.first + d, min(8U, span.width - d), d == 0, distances);
        __syncthreads();
        float least = FLT_MAX;
        float place = 0;
        std::uint32_t nearest = 0;
#pragma unroll 2
        for (std::uint32_t i = 0; i < tree.lines; ++i) {
            const LineConstants line = lines[i];
            const float from = distances[(line.ends & 0xffffU) * Rows + threadIdx.x];
            const float towards = from + line.length - distances[(line.ends >> 16) * Rows + threadIdx.x];
            const float most = line.first + 255 * line.step;
            // A line of length 0 is a point: lambda has no effect.
            const float middle = line.length > 0 ? __fdividef(0.5F * towards, line.length) : line.first;
            const float lambda = fminf(fmaxf(middle, line.first), most);
            const float error = from + lambda * (lambda * line.length - towards);
            if (error < least) {
                least = error;
                place = line.step > 0 ? __fdividef(lambda - line.first, line.step) : 0;
                nearest = i;
            }
        }
        if (!valid) continue;
        code[part] = static_cast<std::uint8_t>(nearest);
        code[tree.line_parts + part] = static_cast<std::uint8_t>(rintf(fminf(fmaxf(place, 0.0F), 255.0F)));
    }
}

}  // namespace

void start_leaves(const CentroidRows& groups, const float* centroids, std::uint32_t k2, float* leaves,
                  cudaStream_t stream)
{
    start_leaves_kernel<<<groups.k1, threads, 0, stream>>>(groups, centroids, k2, leaves);
    check_launch("starting leaves");
}

void improve_leaves(const CentroidRows& groups, std::uint32_t k2, std::uint32_t* labels, float* leaves,
                    cudaStream_t stream)
{
    if (groups.most_rows == 0) return;
    label_members_kernel<<<dim3(groups.k1, blocks_for(groups.most_rows)), threads, 0, stream>>>(groups, k2, leaves,
                                                                                                labels);
    check_launch("assigning to leaves");
    const auto width = static_cast<unsigned>(std::min<std::size_t>((groups.width + 31) / 32 * 32, threads));
    move_leaves_kernel<<<dim3(groups.k1, k2), width, 0, stream>>>(groups, k2, labels, leaves);
    check_launch("moving leaves");
}

void write_leaves(const std::uint32_t* leaves, std::size_t count, std::uint32_t part, const CodeOutput& out,
                  cudaStream_t stream)
{
    if (count == 0) return;
    write_leaves_kernel<<<blocks_for(count), threads, 0, stream>>>(leaves, count, part, out);
    check_launch("writing leaves");
}

void encode_lines(const TreeView& tree, const float* rows, std::size_t count, const CodeOutput& out,
                  std::size_t shared_bytes, cudaStream_t stream)
{
    const bool large = line_bytes(tree, line_rows) <= shared_bytes;
    const int block_rows = large ? line_rows : few_line_rows;
    const auto kernel = large ? encode_lines_kernel<line_rows> : encode_lines_kernel<few_line_rows>;
    allow_shared_memory(kernel);
    for (std::size_t first = 0; first < count; first += launch_rows) {
        const std::size_t here = std::min(launch_rows, count - first);
        const auto blocks = static_cast<std::uint32_t>((here + block_rows - 1) / block_rows);
        kernel<<<blocks, block_rows, line_bytes(tree, block_rows), stream>>>(
            tree, rows + first * tree.dimensions, here, {out.codes + first * out.stride, out.stride});
        check_launch("encoding lines");
    }
}

}  // namespace pgwarp::cuda::pqtree
