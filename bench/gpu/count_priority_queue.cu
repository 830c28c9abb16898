#include "count_priority_queue.h"

#include <algorithm>

#include "device/error.h"
#include "matchcount/slices.cuh"

namespace pgwarp::bench
{

namespace
{

using cuda::check;
using cuda::check_launch;
using cuda::matchcount::CountQueries;
using cuda::matchcount::KeywordListsView;
using cuda::matchcount::Slice;

constexpr int threads = 256;
using Entry = unsigned long long;  // id, count, age; 0: empty, as no count is 0

__device__ Entry make_entry(std::uint32_t id, std::uint32_t count, std::uint32_t age)
{
    return static_cast<Entry>(id) << 32 | static_cast<Entry>(count) << 8 | min(age, 255U);
}
__device__ std::uint32_t id_of(Entry entry)
{
    return static_cast<std::uint32_t>(entry >> 32);
}
__device__ std::uint32_t count_of(Entry entry)
{
    return static_cast<std::uint32_t>(entry) >> 8;
}
__device__ std::uint32_t age_of(Entry entry)
{
    return static_cast<std::uint32_t>(entry) & 255;
}

struct Queue {
    std::uint32_t k;
    unsigned bits;
    std::uint32_t entries;
    std::uint32_t* counters;
    Entry* table;
    std::uint32_t* zipper_array;
    volatile std::uint32_t* audit;
};

// Modified Robin Hood hashing: an entry evicts one of smaller age, and overwrites one that cannot be of the k best.
// Entries of one row may be there twice, with different counts.
__device__ void insert(const Queue& queue, std::uint32_t id, std::uint32_t count)
{
    std::uint32_t at = static_cast<std::uint32_t>((std::uint64_t{id * 2654435769U} * queue.entries) >> 32);
    std::uint32_t age = 0;
    for (std::uint32_t probes = 0; probes < 2 * queue.entries;) {
        const Entry there = *const_cast<volatile Entry*>(queue.table + at);
        const bool same = there != 0 && id_of(there) == id;
        if (same && count_of(there) >= count) return;
        const bool free = there == 0 || same || count_of(there) + 1 < *queue.audit;
        if (free || age_of(there) < min(age, 255U)) {
            if (atomicCAS(queue.table + at, there, make_entry(id, count, age)) != there) continue;
            if (free) return;
            id = id_of(there);
            count = count_of(there);
            age = age_of(there);
        }
        at = at + 1 == queue.entries ? 0 : at + 1;
        ++age;
        ++probes;
    }
}

__device__ void count_row(const Queue& queue, std::uint32_t row)
{
    const std::uint32_t bit = row * queue.bits;  // less than 2^32 bits a query
    const std::uint32_t before = atomicAdd(queue.counters + bit / 32, 1U << bit % 32) >> bit % 32;
    const std::uint32_t count = (queue.bits == 32 ? before : before & ((1U << queue.bits) - 1)) + 1;
    if (count < *queue.audit) return;
    insert(queue, row, count);
    atomicAdd(queue.zipper_array + count, 1);
    for (std::uint32_t audit = *queue.audit;
         *const_cast<volatile std::uint32_t*>(queue.zipper_array + audit) >= queue.k; ++audit)
        atomicMax(const_cast<std::uint32_t*>(queue.audit), audit + 1);
}

struct Queues {
    std::uint32_t k;
    unsigned bits;
    std::uint32_t bound;
    std::uint32_t words;    // of counters, a query
    std::uint32_t entries;  // a query
    std::uint32_t* counters;
    Entry* table;
    std::uint32_t* zipper_array;
    std::uint32_t* audit;

    __device__ Queue of(std::uint32_t query) const
    {
        return {k,
                bits,
                entries,
                counters + std::size_t{query} * words,
                table + std::size_t{query} * entries,
                zipper_array + std::size_t{query} * (bound + 2),
                audit + query};
    }
};

// A block scans the lists of query blockIdx.x in range blockIdx.y; a warp takes a list.
__global__ __launch_bounds__(threads) void match_kernel(KeywordListsView lists, CountQueries queries, Queues queues)
{
    const std::uint32_t query = blockIdx.x;
    const std::uint32_t range = blockIdx.y;
    const Queue queue = queues.of(query);
    const std::uint16_t* postings = lists.list_array + lists.range_starts[range];
    const std::uint32_t last = queries.item_offsets[query + 1];
    for (std::uint32_t item = queries.item_offsets[query] + threadIdx.x / 32; item < last; item += threads / 32) {
        const Slice slice = cuda::matchcount::slice_of(lists, range, queries.items[item]);
        for (std::uint32_t i = threadIdx.x % 32; i < slice.length; i += 32)
            count_row(queue, range * cuda::matchcount::range_rows + postings[slice.start + i]);
    }
}

// A block scans all postings of an item, however many there are: item blockIdx.y of query blockIdx.x, and every
// gridDim.y-th behind it.
__global__ __launch_bounds__(threads) void match_lists_kernel(KeywordListsView lists, CountQueries queries,
                                                              Queues queues)
{
    const std::uint32_t query = blockIdx.x;
    const Queue queue = queues.of(query);
    const std::uint32_t last = queries.item_offsets[query + 1];
    for (std::uint32_t item = queries.item_offsets[query] + blockIdx.y; item < last; item += gridDim.y) {
        for (std::uint32_t range = 0; range < lists.ranges; ++range) {
            const std::uint16_t* postings = lists.list_array + lists.range_starts[range];
            const Slice slice = cuda::matchcount::slice_of(lists, range, queries.items[item]);
            for (std::uint32_t i = threadIdx.x; i < slice.length; i += threads)
                count_row(queue, range * cuda::matchcount::range_rows + postings[slice.start + i]);
        }
    }
}

__global__ void open_kernel(std::uint32_t* audit, std::uint32_t queries)
{
    const std::uint32_t query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query < queries) audit[query] = 1;
}

// Counts the table's rows by count from audit - 1 on, and writes the k largest counts. Of the entries of one row only
// that of its last count is taken, which is there once.
__global__ __launch_bounds__(threads) void select_kernel(Queues queues, std::uint32_t* counts)
{
    extern __shared__ std::uint32_t rows_of_count[];  // [bound + 2]
    const std::uint32_t query = blockIdx.x;
    const Queue queue = queues.of(query);
    for (std::uint32_t i = threadIdx.x; i < queues.bound + 2; i += threads) rows_of_count[i] = 0;
    __syncthreads();
    const std::uint32_t least = max(*queue.audit, 2U) - 1;
    for (std::uint32_t i = threadIdx.x; i < queue.entries; i += threads) {
        const Entry entry = queue.table[i];
        if (entry == 0 || count_of(entry) < least) continue;
        const std::uint32_t bit = id_of(entry) * queue.bits;
        const std::uint32_t word = queue.counters[bit / 32] >> bit % 32;
        const std::uint32_t final_count = queue.bits == 32 ? word : word & ((1U << queue.bits) - 1);
        if (final_count == count_of(entry)) atomicAdd(rows_of_count + final_count, 1);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    std::uint32_t written = 0;
    for (std::uint32_t count = queues.bound + 1; count > 0 && written < queue.k; --count)
        for (std::uint32_t i = 0; i < rows_of_count[count] && written < queue.k; ++i)
            counts[std::size_t{query} * queue.k + written++] = count;
    while (written < queue.k) counts[std::size_t{query} * queue.k + written++] = 0;
}

unsigned bits_for(std::uint32_t bound)
{
    unsigned bits = 4;
    while (bits < 32 && bound >> bits != 0) bits *= 2;
    return bits;
}

}  // namespace

CountPriorityQueues::CountPriorityQueues(std::uint32_t queries, std::uint32_t rows, std::uint32_t k,
                                         std::uint32_t bound, cuda::MemoryPool& pool, cudaStream_t stream)
    : stream_(stream),
      queries_(queries),
      rows_(rows),
      k_(k),
      bound_(bound),
      bits_(bits_for(bound)),
      entries_(k * bound + k * bound / 2 + 1),
      counters_(pool, std::size_t{queries} * ((std::size_t{rows} * bits_ + 31) / 32), "bench", stream),
      table_(pool, std::size_t{queries} * entries_, "bench", stream),
      zipper_array_(pool, std::size_t{queries} * (bound + 2), "bench", stream),
      audit_(pool, queries, "bench", stream)
{
}

struct CountPriorityQueues::View : Queues {
};

CountPriorityQueues::View CountPriorityQueues::view()
{
    return {{k_, bits_, bound_, static_cast<std::uint32_t>(counters_.size() / queries_), entries_, counters_.data(),
             table_.data(), zipper_array_.data(), audit_.data()}};
}

void CountPriorityQueues::match(const KeywordListsView& lists, const CountQueries& queries, Blocks blocks)
{
    check(cudaMemsetAsync(counters_.data(), 0, counters_.bytes(), stream_), "clearing");
    check(cudaMemsetAsync(table_.data(), 0, table_.bytes(), stream_), "clearing");
    check(cudaMemsetAsync(zipper_array_.data(), 0, zipper_array_.bytes(), stream_), "clearing");
    open_kernel<<<(queries_ + 255) / 256, 256, 0, stream_>>>(audit_.data(), queries_);
    if (blocks == Blocks::ranges) {
        match_kernel<<<dim3(queries_, lists.ranges), threads, 0, stream_>>>(lists, queries, view());
    } else {
        match_lists_kernel<<<dim3(queries_, bound_), threads, 0, stream_>>>(lists, queries, view());
    }
    check_launch("count priority queue");
}

void CountPriorityQueues::select(std::uint32_t* counts)
{
    select_kernel<<<queries_, threads, (bound_ + 2) * sizeof(std::uint32_t), stream_>>>(view(), counts);
    check_launch("selection from a count priority queue");
}

}  // namespace pgwarp::bench
