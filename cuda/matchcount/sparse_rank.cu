#include <algorithm>
#include <bit>

#include "device/error.h"
#include "device/shared_memory.h"
#include "distance/score_bits.cuh"
#include "matchcount/sparse_rank.h"
#include "passes/proposal_key.cuh"
#include "select/shared_sort.cuh"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr unsigned threads = 256;
constexpr std::uint32_t step = 64;  // candidates between two looks at the k-th
constexpr std::uint32_t places = most_ranked_k + step;
static_assert(places <= threads);
constexpr std::uint32_t no_index = 0xffffffff;
constexpr std::uint64_t no_distance = ~0ULL;  // the key of NaN

// Shared memory of a block: keys of proposals, keys and rows of the best, the query as a hash table.
struct Ranking {
    std::uint64_t* proposed;
    std::uint64_t* values;
    std::uint32_t* rows;
    SparseElement* table;
};

struct RankArguments {
    SparseRankJob job;
    std::uint32_t first_slot;
    std::uint32_t width;       // of `proposed`
    std::uint32_t table_bits;  // of the hash table
};

__device__ std::uint32_t hash_of(std::uint32_t index, std::uint32_t bits)
{
    return index * 2654435761U >> (32 - bits);
}

// Puts the query into the table, whose half stays empty.
__device__ void fill_table(const SparseElement* query, std::uint32_t count, std::uint32_t bits, SparseElement* table)
{
    const std::uint32_t mask = (1U << bits) - 1;
    for (std::uint32_t i = threadIdx.x; i <= mask; i += blockDim.x) table[i].index = no_index;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        const SparseElement element = query[i];
        std::uint32_t at = hash_of(element.index, bits);
        while (atomicCAS(&table[at].index, no_index, element.index) != no_index) at = (at + 1) & mask;
        table[at].value = element.value;
    }
    __syncthreads();
}

// The canonical inner product of a row and the query: products in ascending order of indices, in float64. All lanes of
// the warp call and get it.
__device__ double dot_of(const SparseElement* row, std::uint32_t count, const SparseElement* table, std::uint32_t bits)
{
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t mask = (1U << bits) - 1;
    double sum = 0;
    for (std::uint32_t base = 0; base < count; base += 32) {
        double product = 0;
        bool shared = false;
        if (base + lane < count) {
            const SparseElement element = row[base + lane];
            std::uint32_t at = hash_of(element.index, bits);
            SparseElement other = table[at];
            while (other.index != no_index && other.index != element.index) {
                at = (at + 1) & mask;
                other = table[at];
            }
            shared = other.index == element.index;
            product = __dmul_rn(other.value, element.value);
        }
        for (unsigned left = __ballot_sync(~0U, shared); left != 0; left &= left - 1)
            sum = __dadd_rn(sum, __shfl_sync(~0U, product, __ffs(static_cast<int>(left)) - 1));
    }
    return sum;
}

// The canonical squared L2 distance, by one thread.
__device__ double l2_squared_of(const SparseElement* a, std::uint32_t count_a, const SparseElement* b,
                                std::uint32_t count_b)
{
    double sum = 0;
    std::uint32_t i = 0;
    std::uint32_t j = 0;
    while (i < count_a || j < count_b) {
        const std::uint32_t index_a = i < count_a ? a[i].index : no_index;
        const std::uint32_t index_b = j < count_b ? b[j].index : no_index;
        const double x = index_a <= index_b ? a[i].value : 0.0F;
        const double y = index_b <= index_a ? b[j].value : 0.0F;
        const double difference = __dsub_rn(x, y);
        sum = __dadd_rn(sum, __dmul_rn(difference, difference));
        i += index_a <= index_b ? 1 : 0;
        j += index_b <= index_a ? 1 : 0;
    }
    return sum;
}

__device__ double cosine_distance(double dot, double square_a, double square_b)
{
    const double similarity = __ddiv_rn(dot, __dsqrt_rn(__dmul_rn(square_a, square_b)));
    if (similarity > 1) return 0;
    if (similarity < -1) return 2;
    return __dsub_rn(1, similarity);
}

// Ascending with the distance; the zeros are one key.
__device__ std::uint64_t key_of(double distance)
{
    return distance != distance ? no_distance : order_of(__dadd_rn(distance, 0.0));
}

__device__ double distance_of(std::uint64_t key)
{
    return key == no_distance ? __longlong_as_double(0x7FF8000000000000LL) : double_of_order(key);
}

class SlotRank
{
public:
    __device__ SlotRank(const RankArguments& arguments, const Ranking& ranking, std::uint32_t slot)
        : arguments_(arguments), job_(arguments.job), ranking_(ranking), slot_(slot)
    {
        id_ = job_.ids != nullptr ? job_.ids[slot] : slot;
        query_ = job_.queries.elements + job_.queries.offsets[id_];
        query_count_ = job_.queries.offsets[id_ + 1] - job_.queries.offsets[id_];
    }

    __device__ void run()
    {
        const std::uint32_t counted = job_.proposals.counts[slot_];
        const std::uint32_t count = min(counted, job_.proposals.capacity);
        const bool complete = counted == count && (job_.incomplete == nullptr || job_.incomplete[slot_] == 0);
        const float threshold = job_.proposals.thresholds[slot_];
        const bool everything = complete && threshold == -INFINITY;
        if (threshold == INFINITY) return give_up(0, false);
        if (count < job_.k && !everything) return give_up(0, false);
        load(count);
        fill_table(query_, query_count_, arguments_.table_bits, ranking_.table);
        double lowest = -INFINITY;
        std::uint32_t kept = 0;
        for (std::uint32_t done = 0; done < count;) {
            const std::uint32_t end = min(count, done + step);
            // Proposals are in falling order: the others have smaller scores.
            if (static_cast<double>(score_of(ranking_.proposed[done])) < lowest) break;
            evaluate(done, end, kept);
            count_rows(ranking_.values, ranking_.rows, kept + end - done);
            kept = min(job_.k, kept + end - done);
            done = end;
            if (kept == job_.k) lowest = lowest_of(ranking_.values[kept - 1]);
            __syncthreads();
        }
        if (!everything && !(complete && static_cast<double>(threshold) < lowest))
            return give_up(lowest, isfinite(lowest));
        write(kept);
    }

private:
    __device__ double lowest_of(std::uint64_t key) const
    {
        if (key == no_distance) return -INFINITY;
        const double lowest = least_sparse_score(job_.bounds, job_.queries.bounds[id_], distance_of(key));
        return lowest == lowest ? lowest : -INFINITY;
    }

    __device__ void load(std::uint32_t count)
    {
        const Proposal* const entries = job_.proposals.entries + std::size_t{slot_} * job_.proposals.capacity;
        const std::uint32_t padded = power_of_two_from(count);
        for (std::uint32_t i = threadIdx.x; i < padded; i += blockDim.x)
            ranking_.proposed[i] = i < count ? proposal_key(entries[i]) : no_proposal;
        sort_keys(ranking_.proposed, padded);
    }

    // Writes the values of proposals [begin, end) behind those that are kept.
    __device__ void evaluate(std::uint32_t begin, std::uint32_t end, std::uint32_t kept)
    {
        const bool by_threads = job_.bounds.metric == Metric::l2;
        const std::uint32_t workers = by_threads ? blockDim.x : blockDim.x / 32;
        for (std::uint32_t i = begin + (by_threads ? threadIdx.x : threadIdx.x / 32); i < end; i += workers) {
            const std::uint32_t row = job_.order.row_of(static_cast<std::uint32_t>(ranking_.proposed[i]));
            const SparseElement* const elements = job_.rows.elements + job_.rows.offsets[row];
            const auto count = static_cast<std::uint32_t>(job_.rows.offsets[row + 1] - job_.rows.offsets[row]);
            double distance = 0;
            if (by_threads) {
                distance = __dsqrt_rn(l2_squared_of(query_, query_count_, elements, count));
            } else {
                distance = -dot_of(elements, count, ranking_.table, arguments_.table_bits);
                if (job_.bounds.metric == Metric::cosine)
                    distance = cosine_distance(-distance, job_.queries.squares[id_], job_.rows.squares[row]);
                if (threadIdx.x % 32 != 0) continue;
            }
            ranking_.values[kept + i - begin] = key_of(distance);
            ranking_.rows[kept + i - begin] = row;
        }
    }

    __device__ void write(std::uint32_t kept)
    {
        const std::size_t out = std::size_t{id_} * job_.k;
        for (std::uint32_t i = threadIdx.x; i < kept; i += blockDim.x) {
            const double distance = distance_of(ranking_.values[i]);
            // A zero inner product has the distance -0.
            const bool negative = job_.bounds.metric == Metric::inner_product && distance == 0;
            job_.answers.values[out + i] = negative ? -0.0 : distance;
            job_.answers.rows[out + i] = ranking_.rows[i];
        }
        const bool valid = threadIdx.x < kept && ranking_.values[threadIdx.x] != no_distance;
        const int found = __syncthreads_count(valid ? 1 : 0);
        if (threadIdx.x == 0) job_.answers.found[id_] = static_cast<std::uint32_t>(found);
    }

    __device__ void give_up(double lowest, bool has_threshold)
    {
        if (threadIdx.x != 0) return;
        job_.answers.found[id_] = no_answer;
        if (job_.unproven.count == nullptr || !has_threshold) return;
        const std::uint32_t place = atomicAdd(job_.unproven.count, 1);
        job_.unproven.ids[place] = id_;
        job_.unproven.thresholds[place] = nextafterf(__double2float_rd(lowest), -INFINITY);
    }

    const RankArguments& arguments_;
    const SparseRankJob& job_;
    const Ranking& ranking_;
    std::uint32_t slot_;
    std::uint32_t id_;
    const SparseElement* query_;
    std::uint32_t query_count_;
};

__global__ __launch_bounds__(threads) void rank_kernel(const __grid_constant__ RankArguments arguments)
{
    extern __shared__ std::uint64_t shared[];
    std::uint64_t* const values = shared + arguments.width;
    auto* const table = reinterpret_cast<SparseElement*>(values + places);
    const Ranking ranking{shared, values, reinterpret_cast<std::uint32_t*>(table + (1U << arguments.table_bits)),
                          table};
    SlotRank(arguments, ranking, arguments.first_slot + blockIdx.x).run();
}

// The slots of a launch that ends in time: a block values some 2^31 elements a second and sorts some 2^26 proposals.
std::uint32_t launch_slots(const SparseRankJob& job, int multiprocessors)
{
    constexpr double launch_seconds = 1e-3;
    const double elements = static_cast<double>(job.rows.element_count) / std::max(1U, job.rows.rows) +
                            (job.bounds.metric == Metric::l2 ? job.queries.most_elements : 0);
    const double seconds = job.proposals.capacity * (elements / 0x1p31 + 1 / 0x1p26);
    return static_cast<std::uint32_t>(std::max(1.0, launch_seconds / seconds)) *
           static_cast<std::uint32_t>(multiprocessors);
}

}  // namespace

void rank_sparse(const Context& context, const SparseRankJob& job, cudaStream_t stream)
{
    RankArguments arguments{job, 0, std::bit_ceil(std::max(1U, job.proposals.capacity)), 0};
    arguments.table_bits = static_cast<std::uint32_t>(std::bit_width(std::max(16U, 2 * job.queries.most_elements) - 1));
    const std::size_t shared = (arguments.width + places) * sizeof(std::uint64_t) + places * sizeof(std::uint32_t) +
                               (std::size_t{1} << arguments.table_bits) * sizeof(SparseElement);
    allow_shared_memory(rank_kernel);
    const std::uint32_t slots = launch_slots(job, context.multiprocessors());
    for (; arguments.first_slot < job.slots; arguments.first_slot += slots) {
        rank_kernel<<<std::min(slots, job.slots - arguments.first_slot), threads, shared, stream>>>(arguments);
        check_launch("ranking sparse rows");
    }
}

}  // namespace pgwarp::cuda::matchcount
