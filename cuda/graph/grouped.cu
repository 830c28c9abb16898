#include "graph/grouped.h"

#include <algorithm>
#include <vector>

#include "cluster/kmeans.h"
#include "cluster/row_products.h"
#include "device/error.h"
#include "device/shared_memory.h"
#include "device/wait.h"
#include "graph/entry.h"
#include "graph/nearest.h"
#include "methods/graph/graph.h"
#include "numeric/sample.h"
#include "passes/exact_search.h"
#include "rows/gather.h"
#include "select/select.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr std::uint64_t seed = 0x67726170;
constexpr std::uint32_t rows_of_group = 100000;  // mean number of rows whose nearest centre is that of the group
constexpr std::size_t rows_per_centre = 1000;    // rows of the k-means sample for each centre
constexpr std::size_t scored_rows = 1U << 19;    // rows whose scores with all centres are in memory at a time
constexpr unsigned merge_threads = 128;          // a warp for each row
constexpr unsigned merge_warps = merge_threads / 32;
constexpr std::size_t merge_elements = std::size_t{1} << 30;  // of a launch

// Translates the lists of a group's members from places in the group to row numbers, into out.
__global__ void place_lists(const std::uint32_t* lists, const std::uint32_t* members, const std::uint32_t* turns,
                            std::size_t count, std::uint32_t width, std::uint32_t* out)
{
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count * width) return;
    const std::size_t member = i / width;
    const std::uint32_t place = lists[i];
    // Each row has groups_of_row lists; this group's is list turns[member].
    const std::size_t to = (static_cast<std::size_t>(members[member]) * groups_of_row + turns[member]) * width;
    out[to + i % width] = place == no_neighbour ? no_neighbour : members[place];
}

// Eight lanes compute the distance of a pair. All of them get the sum.
__device__ float distance_of(Metric metric, const float* a, const float* b, std::uint32_t dimensions)
{
    float sum = 0;
    for (std::uint32_t d = threadIdx.x % 8; d < dimensions; d += 8) {
        const float difference = a[d] - b[d];
        sum += metric == Metric::l1 ? fabsf(difference) : difference * difference;
    }
    for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
    return sum;
}

// The nearest rows of all lists of a row, without repeats. A warp for each row.
__global__ __launch_bounds__(merge_threads) void merge_lists(Metric metric, const float* vectors,
                                                             std::uint32_t dimensions, const std::uint32_t* lists,
                                                             std::uint32_t first, std::uint32_t end,
                                                             std::uint32_t width, std::uint32_t* out)
{
    extern __shared__ Entry shared_entries[];
    const std::uint32_t row = first + blockIdx.x * merge_warps + threadIdx.x / 32;
    if (row >= end) return;
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t all = groups_of_row * width;
    Entry* entries = shared_entries + threadIdx.x / 32 * all;
    const std::uint32_t* near = lists + static_cast<std::size_t>(row) * all;
    const float* own = vectors + static_cast<std::size_t>(row) * dimensions;
    for (std::uint32_t base = 0; base < all; base += 4) {
        const std::uint32_t at = base + lane / 8;
        const std::uint32_t other = at < all ? near[at] : no_neighbour;
        const float distance = distance_of(
            metric, own, vectors + static_cast<std::size_t>(other == no_neighbour ? row : other) * dimensions,
            dimensions);
        if (at < all && lane % 8 == 0) entries[at] = other == no_neighbour ? no_entry : make_entry(distance, other);
    }
    std::uint32_t* to = out + static_cast<std::size_t>(row) * width;
    for (std::uint32_t i = lane; i < width; i += 32) to[i] = no_neighbour;
    __syncwarp();
    // Marks repeats: of equal entries the first stays. One bit for each of a lane's entries.
    std::uint32_t again = 0;
    for (std::uint32_t i = lane, bit = 0; i < all; i += 32, ++bit) {
        bool seen = false;
        for (std::uint32_t j = 0; j < i && !seen; ++j) seen = entries[j] == entries[i];
        again |= (seen ? 1U : 0U) << bit;
    }
    __syncwarp();
    for (std::uint32_t i = lane, bit = 0; i < all; i += 32, ++bit) {
        if ((again >> bit & 1U) != 0) entries[i] = no_entry;
    }
    __syncwarp();
    for (std::uint32_t i = lane; i < all; i += 32) {
        if (entries[i] == no_entry) continue;
        std::uint32_t before = 0;
        for (std::uint32_t j = 0; j < all; ++j) before += entries[j] < entries[i] ? 1 : 0;
        if (before < width) to[before] = row_of(entries[i]);
    }
}

template <class T>
DeviceArray<T> copy_in(Context& context, std::span<const T> values, cudaStream_t stream)
{
    DeviceArray<T> copy(context.pool(), values.size(), "graph build", stream);
    send(copy.data(), values.data(), copy.bytes(), stream, "grouping rows");
    return copy;
}

// Centres [groups][dimensions], trained on a sample.
DeviceArray<float> find_centres(Context& context, const GroupedJob& job, std::uint32_t groups, cudaStream_t stream)
{
    const std::vector<std::uint32_t> chosen = sample_rows(job.rows, groups * rows_per_centre, seed + 3);
    const auto numbers = copy_in(context, std::span(chosen), stream);
    DeviceArray<float> sample(context.pool(), chosen.size() * job.dimensions, "graph build", stream);
    rows::gather_rows(job.vectors, job.dimensions, numbers.data(), chosen.size(), sample.data(), stream);
    KMeansOptions training;
    training.clusters = groups;
    training.seed = seed;
    training.balanced = true;
    training.cancel = job.cancel;
    DeviceArray<float> centres(context.pool(), std::size_t{groups} * job.dimensions, "graph build", stream);
    train_kmeans(context, sample.data(), chosen.size(), job.dimensions, training, centres.data(), stream);
    return centres;
}

// The members of each group, and for each member the index of this group among the member's groups.
struct Groups {
    std::vector<std::vector<std::uint32_t>> members;
    std::vector<std::vector<std::uint32_t>> turns;
};

Groups assign(Context& context, const GroupedJob& job, std::uint32_t groups, cudaStream_t stream)
{
    const DeviceArray<float> centres = find_centres(context, job, groups, stream);
    MemoryPool& pool = context.pool();
    DeviceArray<float> norms(pool, groups, "graph build", stream);
    squared_norms(centres.data(), groups, job.dimensions, norms.data(), stream);
    const std::size_t step = std::min<std::size_t>(scored_rows, job.rows);
    const SelectShape shape{static_cast<std::int64_t>(step), groups, groups, groups_of_row};
    DeviceArray<float> scores(pool, step * groups, "graph build", stream);
    DeviceArray<float> values(pool, step * groups_of_row, "graph build", stream);
    DeviceArray<std::uint32_t> nearest(pool, step * groups_of_row, "graph build", stream);
    DeviceArray<std::byte> space(pool, select_workspace_bytes(shape), "graph build", stream);
    std::vector<std::uint32_t> host(step * groups_of_row);
    Groups made;
    made.members.resize(groups);
    made.turns.resize(groups);
    for (std::size_t first = 0; first < job.rows; first += step) {
        if (job.cancel != nullptr) job.cancel->check();
        const std::size_t count = std::min(step, job.rows - first);
        score_rows(job.vectors + first * job.dimensions, count, centres.data(), norms.data(), groups, job.dimensions,
                   scores.data(), groups, stream);
        SelectShape some = shape;
        some.rows = static_cast<std::int64_t>(count);
        select_smallest(scores.data(), some, values.data(), nearest.data(), space.data(), stream);
        read_back(host.data(), nearest.data(), count * groups_of_row * sizeof(std::uint32_t), stream, "grouping rows");
        for (std::size_t i = 0; i < count * groups_of_row; ++i) {
            const auto row = static_cast<std::uint32_t>(first + i / groups_of_row);
            if (host[i] >= groups || bit_is_set(job.left_out, row)) continue;
            made.members[host[i]].push_back(row);
            made.turns[host[i]].push_back(static_cast<std::uint32_t>(i % groups_of_row));
        }
    }
    return made;
}

// Compares the rows of one group and writes their nearest rows to lists [rows][groups_of_row][width].
void compare_group(Context& context, const GroupedJob& job, std::span<const std::uint32_t> members,
                   std::span<const std::uint32_t> turns, std::uint32_t* lists, cudaStream_t stream)
{
    // nearest_rows() needs fewest_compared rows. A smaller group is too small to matter.
    if (members.size() < fewest_compared) return;
    MemoryPool& pool = context.pool();
    const auto numbers = copy_in(context, members, stream);
    const auto places = copy_in(context, turns, stream);
    DeviceArray<float> rows(pool, members.size() * job.dimensions, "graph build", stream);
    rows::gather_rows(job.vectors, job.dimensions, numbers.data(), members.size(), rows.data(), stream);
    const auto count = static_cast<std::uint32_t>(members.size());
    const ExactRows exact = make_exact_rows(pool, job.metric, rows.data(), count, job.dimensions, stream);
    DeviceArray<std::uint32_t> near(pool, members.size() * job.width, "graph build", stream);
    NearestJob nearest;
    nearest.rows = &exact;
    nearest.width = job.width;
    nearest.out = near.data();
    nearest.cancel = job.cancel;
    nearest_rows(context, nearest, stream);
    const std::size_t cells = members.size() * job.width;
    place_lists<<<static_cast<unsigned>((cells + 255) / 256), 256, 0, stream>>>(
        near.data(), numbers.data(), places.data(), members.size(), job.width, lists);
    check_launch("placing near rows");
    wait_for(stream, "comparing rows");
}

}  // namespace

void grouped_nearest_rows(Context& context, const GroupedJob& job, cudaStream_t stream)
{
    if (job.rows == 0) return;
    const std::uint32_t groups =
        std::max(groups_of_row, job.groups != 0 ? job.groups : (job.rows + rows_of_group - 1) / rows_of_group);
    const Groups made = assign(context, job, groups, stream);
    DeviceArray<std::uint32_t> lists(context.pool(), std::size_t{job.rows} * groups_of_row * job.width, "graph build",
                                     stream);
    check(cudaMemsetAsync(lists.data(), 0xff, lists.bytes(), stream), "grouping rows");
    for (std::uint32_t group = 0; group < groups; ++group) {
        if (job.cancel != nullptr) job.cancel->check();
        if (job.progress) job.progress(std::uint64_t{job.rows} * group / groups);
        compare_group(context, job, made.members[group], made.turns[group], lists.data(), stream);
    }
    const std::size_t shared = std::size_t{merge_warps} * groups_of_row * job.width * sizeof(Entry);
    allow_shared_memory(merge_lists);
    const std::size_t row_elements = std::size_t{groups_of_row} * job.width * job.dimensions;
    const auto step = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(merge_elements / row_elements, merge_warps, job.rows + merge_warps));
    for (std::uint32_t first = 0; first < job.rows;) {
        const std::uint32_t end = first + std::min(step, job.rows - first);
        merge_lists<<<(end - first + merge_warps - 1) / merge_warps, merge_threads, shared, stream>>>(
            job.metric, job.vectors, job.dimensions, lists.data(), first, end, job.width, job.out);
        check_launch("merging near rows");
        first = end;
    }
    wait_for(stream, "merging near rows");
}

}  // namespace pgwarp::cuda::graph
