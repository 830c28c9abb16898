// A posting of bank b goes to a vector of number b modulo 32 while its section has places there; the rest take the
// places that are left. A warp orders a short section, a block a long one.
#include "matchcount/bank_order.h"

#include "device/error.h"
#include "matchcount/binary_search.cuh"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr std::uint32_t banks = 32;
constexpr std::uint32_t period = banks * vector_postings;
constexpr std::uint32_t shortest_ordered = 64;
constexpr std::uint32_t shortest_long = 2048;
constexpr std::uint32_t every_lane = 0xffffffffU;

// The bank of a row's 8-bit counter. Wider counters gain a part of it.
__device__ std::uint32_t bank_of(std::uint32_t row)
{
    return row / 4 % banks;
}

// The places of a section for each bank: [begin, end) of the list array, whose vectors have the banks 0 to 31 in turn.
struct Places {
    std::uint64_t first_period;
    std::uint32_t begin;  // from first_period on
    std::uint32_t end;

    __device__ Places(std::uint64_t start, std::uint32_t count)
        : first_period(start / period * period), begin(start % period), end(begin + count)
    {
    }
    __device__ static std::uint32_t below(std::uint32_t at, std::uint32_t bank)
    {
        const std::uint32_t rest = at % period;
        const std::uint32_t before = bank * vector_postings;
        return at / period * vector_postings + (rest > before ? min(rest - before, vector_postings) : 0);
    }
    __device__ std::uint32_t of(std::uint32_t bank) const { return below(end, bank) - below(begin, bank); }
    __device__ std::uint64_t place(std::uint32_t bank, std::uint32_t rank) const
    {
        rank += below(begin, bank);
        return first_period + rank / vector_postings * period + bank * vector_postings + rank % vector_postings;
    }
};

__device__ std::uint32_t sum_before(std::uint32_t value)
{
    std::uint32_t sum = value;
    for (std::uint32_t step = 1; step < 32; step *= 2) {
        const std::uint32_t before = __shfl_up_sync(every_lane, sum, step);
        if (threadIdx.x % 32 >= step) sum += before;
    }
    return sum - value;
}

// Numbers of a section by bank, for the warps that order it.
template <int team>
struct BankMemory {
    std::uint32_t rows[banks];
    std::uint32_t used[team][banks];  // by earlier rows; a warp takes consecutive rows
    std::uint32_t places[banks];
    std::uint32_t spilled_before[banks];  // rows of smaller banks without a place of their own
    std::uint32_t free_before[banks];     // places of smaller banks without a row of their own
};

template <int team>
__device__ void wait_for_team()
{
    if constexpr (team == 1)
        __syncwarp();
    else
        __syncthreads();
}

// Fills the memory from the numbers of each warp's rows in used[]. One warp calls it.
template <int team>
__device__ void share_places(const Places& places, BankMemory<team>& memory)
{
    const std::uint32_t bank = threadIdx.x % 32;
    std::uint32_t own = 0;
    for (int w = 0; w < team; ++w) {
        const std::uint32_t more = memory.used[w][bank];
        memory.used[w][bank] = own;
        own += more;
    }
    const std::uint32_t room = places.of(bank);
    memory.rows[bank] = own;
    memory.places[bank] = room;
    memory.spilled_before[bank] = sum_before(own > room ? own - room : 0);
    memory.free_before[bank] = sum_before(room > own ? room - own : 0);
}

template <int team>
__device__ void order_section(const std::uint16_t* rows, std::uint32_t count, const Places& places,
                              std::uint16_t* list_array, BankMemory<team>& memory)
{
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t warp = team == 1 ? 0 : threadIdx.x / 32;
    const std::uint32_t in_warp = (count + team * 32 - 1) / (team * 32) * 32;
    const std::uint32_t begin = min(count, warp * in_warp);
    const std::uint32_t end = min(count, begin + in_warp);
    std::uint32_t* used = memory.used[warp];
    used[lane] = 0;
    __syncwarp();
    for (std::uint32_t i = begin + lane; i < end; i += 32) atomicAdd(used + bank_of(rows[i]), 1);
    wait_for_team<team>();
    if (warp == 0) share_places(places, memory);
    wait_for_team<team>();
    for (std::uint32_t first = begin; first < end; first += 32) {
        const bool is_row = first + lane < end;
        const std::uint32_t row = is_row ? rows[first + lane] : 0;
        std::uint32_t bank = bank_of(row);
        const std::uint32_t equal = __match_any_sync(every_lane, is_row ? bank : banks);
        const std::uint32_t before = __popc(equal & ((1U << lane) - 1));
        std::uint32_t rank = used[bank] + before;
        __syncwarp();
        if (is_row && before == 0) used[bank] += __popc(equal);
        __syncwarp();
        if (!is_row) continue;
        if (rank >= memory.places[bank]) {
            const std::uint32_t spilled = memory.spilled_before[bank] + rank - memory.places[bank];
            bank = 0;
            for (std::uint32_t step = banks / 2; step > 0; step /= 2)
                if (memory.free_before[bank + step] <= spilled) bank += step;
            rank = memory.rows[bank] + spilled - memory.free_before[bank];
        }
        list_array[places.place(bank, rank)] = static_cast<std::uint16_t>(row);
    }
    wait_for_team<team>();
}

// Lists of a range: rows in the order of keyword and row, and the array that is written.
struct SortedLists {
    const std::uint16_t* rows;
    const std::uint32_t* positions;
    std::uint32_t lists;
    std::uint16_t* list_array;
    std::uint64_t start;
};

// Calls order(begin, count) for each section of a list, of rows from `begin` on.
template <class Order>
__device__ void for_sections(const SortedLists& sorted, std::uint32_t list, const Order& order)
{
    const std::uint32_t end = sorted.positions[list + 1];
    std::uint32_t begin = sorted.positions[list];
    for (std::uint32_t last = section_rows - 1; begin < end; last += section_rows) {
        const std::uint32_t more = first_at_least(sorted.rows + begin, end - begin, last + 1);
        order(begin, more);
        begin += more;
    }
}

__global__ __launch_bounds__(threads) void order_short_sections_kernel(SortedLists sorted)
{
    __shared__ BankMemory<1> memory[warps];
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint64_t list = std::uint64_t{blockIdx.x} * warps + threadIdx.x / 32;
    if (list >= sorted.lists) return;
    for_sections(sorted, static_cast<std::uint32_t>(list), [&](std::uint32_t begin, std::uint32_t count) {
        const std::uint16_t* rows = sorted.rows + begin;
        const std::uint64_t start = sorted.start + begin;
        if (count < shortest_ordered)
            for (std::uint32_t i = lane; i < count; i += 32) sorted.list_array[start + i] = rows[i];
        else if (count < shortest_long)
            order_section(rows, count, Places(start, count), sorted.list_array, memory[threadIdx.x / 32]);
    });
}

// A block looks at as many lists as it has threads.
__global__ __launch_bounds__(threads) void order_long_sections_kernel(SortedLists sorted)
{
    __shared__ BankMemory<warps> memory;
    __shared__ std::uint32_t found[threads];
    __shared__ std::uint32_t count_found;
    if (threadIdx.x == 0) count_found = 0;
    __syncthreads();
    const std::uint64_t list = std::uint64_t{blockIdx.x} * threads + threadIdx.x;
    if (list < sorted.lists && sorted.positions[list + 1] - sorted.positions[list] >= shortest_long)
        found[atomicAdd(&count_found, 1)] = static_cast<std::uint32_t>(list);
    __syncthreads();
    for (std::uint32_t i = 0; i < count_found; ++i)
        for_sections(sorted, found[i], [&](std::uint32_t begin, std::uint32_t count) {
            const std::uint64_t start = sorted.start + begin;
            if (count >= shortest_long)
                order_section(sorted.rows + begin, count, Places(start, count), sorted.list_array, memory);
        });
}

}  // namespace

void order_by_banks(const std::uint16_t* rows, const std::uint32_t* positions, std::uint32_t lists,
                    std::uint16_t* list_array, std::uint64_t start, cudaStream_t stream)
{
    if (lists == 0) return;
    const SortedLists sorted{rows, positions, lists, list_array, start};
    order_short_sections_kernel<<<(lists + warps - 1) / warps, threads, 0, stream>>>(sorted);
    check_launch("the order of postings");
    order_long_sections_kernel<<<(lists + threads - 1) / threads, threads, 0, stream>>>(sorted);
    check_launch("the order of postings");
}

}  // namespace pgwarp::cuda::matchcount
