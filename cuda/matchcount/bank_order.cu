// A posting of bank b goes to a vector of number b modulo 32 while its list has places there; the rest take the places
// that are left. A warp orders a list.
#include "matchcount/bank_order.h"

#include <algorithm>

#include "device/error.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr std::uint32_t banks = 32;
constexpr std::uint32_t period = banks * vector_postings;
constexpr std::uint32_t shortest_ordered = 64;
constexpr std::uint32_t every_lane = 0xffffffffU;

// The bank of a row's 8-bit counter. Wider counters gain a part of it.
__device__ std::uint32_t bank_of(std::uint32_t row)
{
    return row / 4 % banks;
}

// The places of a list for each bank: [begin, end) of the list array, whose vectors have the banks 0 to 31 in turn.
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

// Numbers of a list by bank.
struct BankMemory {
    std::uint32_t rows[banks];
    std::uint32_t used[banks];
    std::uint32_t places[banks];
    std::uint32_t spilled_before[banks];  // rows of smaller banks without a place of their own
    std::uint32_t free_before[banks];     // places of smaller banks without a row of their own
};

__device__ void order_list(const std::uint16_t* rows, std::uint32_t count, const Places& places,
                           std::uint16_t* list_array, BankMemory& memory)
{
    const std::uint32_t lane = threadIdx.x % 32;
    memory.rows[lane] = 0;
    memory.used[lane] = 0;
    __syncwarp();
    for (std::uint32_t i = lane; i < count; i += 32) atomicAdd(&memory.rows[bank_of(rows[i])], 1);
    __syncwarp();
    const std::uint32_t own = memory.rows[lane];
    const std::uint32_t room = places.of(lane);
    memory.places[lane] = room;
    memory.spilled_before[lane] = sum_before(own > room ? own - room : 0);
    memory.free_before[lane] = sum_before(room > own ? room - own : 0);
    __syncwarp();
    for (std::uint32_t first = 0; first < count; first += 32) {
        const bool is_row = first + lane < count;
        const std::uint32_t row = is_row ? rows[first + lane] : 0;
        std::uint32_t bank = bank_of(row);
        const std::uint32_t equal = __match_any_sync(every_lane, is_row ? bank : banks);
        const std::uint32_t before = __popc(equal & ((1U << lane) - 1));
        std::uint32_t rank = memory.used[bank] + before;
        __syncwarp();
        if (is_row && before == 0) memory.used[bank] += __popc(equal);
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
}

__global__ __launch_bounds__(threads) void order_by_banks_kernel(const std::uint16_t* rows,
                                                                 const std::uint32_t* positions, std::uint32_t lists,
                                                                 std::uint16_t* list_array, std::uint64_t start)
{
    __shared__ BankMemory memory[warps];
    const std::uint32_t lane = threadIdx.x % 32;
    for (std::uint64_t list = std::uint64_t{blockIdx.x} * warps + threadIdx.x / 32; list < lists;
         list += std::uint64_t{gridDim.x} * warps) {
        const std::uint32_t begin = positions[list];
        const std::uint32_t count = positions[list + 1] - begin;
        if (count < shortest_ordered) {
            for (std::uint32_t i = lane; i < count; i += 32) list_array[start + begin + i] = rows[begin + i];
        } else {
            order_list(rows + begin, count, Places(start + begin, count), list_array, memory[threadIdx.x / 32]);
        }
        __syncwarp();
    }
}

}  // namespace

void order_by_banks(const std::uint16_t* rows, const std::uint32_t* positions, std::uint32_t lists,
                    std::uint16_t* list_array, std::uint64_t start, cudaStream_t stream)
{
    if (lists == 0) return;
    const std::uint32_t blocks = std::min((lists + warps - 1) / warps, 65536U);
    order_by_banks_kernel<<<blocks, threads, 0, stream>>>(rows, positions, lists, list_array, start);
    check_launch("the order of postings");
}

}  // namespace pgwarp::cuda::matchcount
