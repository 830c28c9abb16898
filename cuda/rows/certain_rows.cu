#include "rows/certain_rows.h"

#include <algorithm>
#include <bit>

#include "device/error.h"
#include "device/shared_memory.h"
#include "rows/candidates.cuh"
#include "rows/near_values.cuh"
#include "rows/values.cuh"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr int threads = 128;
constexpr std::uint32_t most_piece_rows = 1024;
constexpr std::uint32_t fewest_piece_rows = 64;
constexpr std::uint32_t blocks_of_processor = 8;
constexpr int merge_threads = 256;
constexpr std::uint32_t merge_places = 2048;
// The most elements of rows that one launch reads: less than 2 ms of an H100, for which other queries wait.
constexpr std::size_t launch_elements = std::size_t{1} << 30;

// Entries of the pieces: [pieces][width], unordered.
struct Entries {
    std::uint64_t* keys;
    std::uint32_t* rows;
    std::uint32_t* counts;  // [pieces]
    std::uint32_t width;
};

// The layout of the workspace on the device, which begins as that on the host.
struct Space {
    std::uint32_t* lists;
    ListPiece* pieces;
    std::uint32_t* first_pieces;
    std::size_t written;  // bytes that the host writes
    Entries entries;
};

Space lay_out(Carver& memory, const ListLayout& layout, std::uint32_t k, bool entries)
{
    Space space{};
    space.lists = memory.take<std::uint32_t>(layout.sent_rows());
    space.pieces = memory.take<ListPiece>(layout.pieces().size());
    space.first_pieces = memory.take<std::uint32_t>(layout.first_pieces().size());
    space.written = memory.used();
    if (!entries) return space;
    const std::size_t pieces = layout.pieces().size();
    space.entries.width = k + spare_rows;
    space.entries.keys = memory.take<std::uint64_t>(pieces * space.entries.width);
    space.entries.rows = memory.take<std::uint32_t>(pieces * space.entries.width);
    space.entries.counts = memory.take<std::uint32_t>(pieces);
    return space;
}

struct CompareJob {
    CertainRows rows;
    bool near;  // sums choose the rows whose values are computed
    const float* queries;
    const std::uint32_t* lists;
    const ListPiece* pieces;
    Entries entries;
    std::uint32_t k;
    std::uint32_t capacity;  // a power of two
};

__host__ __device__ std::uint32_t padded_dimensions(std::uint32_t dimensions)
{
    return (dimensions + piece_elements - 1) / piece_elements * piece_elements;
}

std::size_t shared_bytes(std::uint32_t dimensions, std::uint32_t capacity)
{
    return sizeof(RankShared) + capacity * (sizeof(std::uint64_t) + sizeof(std::uint32_t)) +
           2 * padded_dimensions(dimensions) * sizeof(float);
}

// Full vectors at the positions of their numbers.
struct NumberedRows {
    const float* rows;
    std::uint32_t dimensions;

    using Piece = detail::FullRows::Piece;
    __device__ Piece read(std::uint32_t row, std::uint32_t d) const
    {
        const float* from = rows + std::size_t{row} * dimensions + d;
        const float4 low = *reinterpret_cast<const float4*>(from);
        return {low, d + 4 < dimensions ? *reinterpret_cast<const float4*>(from + 4) : float4{0, 0, 0, 0}};
    }
    __device__ void decode(const Piece& piece, const float* mean, float* out) const
    {
        detail::FullRows{}.decode(piece, mean, out);
    }
};

// All 32 lanes call, each group of 8 with a row of its own.
__device__ double value_of(const ResidentRows& resident, const float* query, double norm, std::uint32_t row)
{
    if (resident.metric == Metric::l1) {
        const float* stored = resident.full + std::size_t{row} * resident.dimensions;
        return canonical_sum_of([=](std::uint32_t d) { return query[d]; }, [=](std::uint32_t d) { return stored[d]; },
                                resident.dimensions,
                                [](double sum, double a, double b) { return __dadd_rn(sum, fabs(__dsub_rn(a, b))); });
    }
    if (resident.full != nullptr) return full_value(resident, query, row);
    return half_value(resident, query, norm, row);
}

// The norm of a query where values need it.
__device__ double norm_of(const ResidentRows& resident, const float* query)
{
    if (resident.full != nullptr || resident.metric != Metric::inner_product) return 0;
    return __dsqrt_rn(canonical_dot(query, query, resident.dimensions));
}

__device__ bool is_dead(const CertainRows& rows, std::uint32_t row)
{
    return rows.dead != nullptr && ((rows.dead[row / 64] >> (row % 64)) & 1U) != 0;
}

// Writes the rows of a piece that are not dead, and returns their number.
__device__ std::uint32_t list_live(const CompareJob& job, const ListPiece& piece, std::uint32_t* numbers,
                                   std::uint32_t* counter)
{
    if (threadIdx.x == 0) *counter = 0;
    __syncthreads();
    for (std::uint32_t base = 0; base < piece.count; base += threads) {
        const std::uint32_t i = base + threadIdx.x;
        const std::uint32_t row = i < piece.count ? job.lists[piece.first + i] : 0;
        const bool live = i < piece.count && !is_dead(job.rows, row);
        const std::uint32_t place = take_place(live, counter);
        if (live) numbers[place] = row;
    }
    __syncthreads();
    return *counter;
}

__device__ std::uint32_t keep_near(const CompareJob& job, std::uint32_t* numbers, std::uint32_t count,
                                   const NearSpace& space)
{
    const ResidentRows& resident = job.rows.resident;
    if (resident.full != nullptr) {
        const NumberedRows rows{resident.full, resident.dimensions};
        return detail::keep_near<threads>(rows, resident, numbers, count, job.k, space);
    }
    const detail::HalfRows rows{resident.half.rows, resident.stride, __fdiv_rn(1.0F, resident.half.scale)};
    return detail::keep_near<threads>(rows, resident, numbers, count, job.k, space);
}

__global__ __launch_bounds__(threads) void compare_pieces(CompareJob job, std::uint32_t first)
{
    extern __shared__ std::uint64_t keys[];
    const ResidentRows& resident = job.rows.resident;
    auto* select = reinterpret_cast<RankShared*>(keys + job.capacity);
    auto* query = reinterpret_cast<float*>(select + 1);
    float* mean = query + padded_dimensions(resident.dimensions);
    auto* numbers = reinterpret_cast<std::uint32_t*>(mean + padded_dimensions(resident.dimensions));
    auto* bounds = reinterpret_cast<float*>(keys);

    const std::uint32_t number = first + blockIdx.x;
    const ListPiece piece = job.pieces[number];
    const float* given = job.queries + std::size_t{piece.query} * resident.dimensions;
    for (std::uint32_t d = threadIdx.x; d < padded_dimensions(resident.dimensions); d += threads) {
        const bool inside = d < resident.dimensions;
        query[d] = inside ? given[d] : 0;
        mean[d] = inside && resident.full == nullptr ? resident.half.mean[d] : 0;
    }
    std::uint32_t count = list_live(job, piece, numbers, &select->kept);
    if (job.near && count > job.k + spare_rows)
        count = keep_near(job, numbers, count, {query, mean, bounds, bounds + job.capacity, select});
    const double norm = norm_of(resident, query);
    // The bound is uniform in a warp, whose lanes all take part in the shuffles.
    for (std::uint32_t base = threadIdx.x / 32 * 4; base < count; base += threads / 8) {
        const std::uint32_t at = base + threadIdx.x % 32 / 8;
        const double value = value_of(resident, query, norm, numbers[min(at, count - 1)]);
        if (at < count && threadIdx.x % 8 == 0) keys[at] = order_of(__dadd_rn(value, 0.0));
    }
    __syncthreads();
    if (count > job.entries.width) sort_candidates<threads>(static_cast<int>(count), keys, numbers);
    const std::uint32_t kept = min(count, job.entries.width);
    const std::size_t out = std::size_t{number} * job.entries.width;
    for (std::uint32_t i = threadIdx.x; i < kept; i += threads) {
        job.entries.keys[out + i] = keys[i];
        job.entries.rows[out + i] = numbers[i];
    }
    if (threadIdx.x == 0) job.entries.counts[number] = kept;
}

// The first k of the entries of a query's pieces: those before the k-th so far are collected, and sorted when their
// places are full.
__global__ __launch_bounds__(merge_threads) void merge_pieces(Entries entries, const std::uint32_t* first_pieces,
                                                              std::uint32_t k, Answers out)
{
    __shared__ std::uint64_t keys[merge_places];
    __shared__ std::uint32_t rows[merge_places];
    __shared__ std::uint32_t taken;
    const std::uint32_t query = blockIdx.x;
    const std::size_t begin = std::size_t{first_pieces[query]} * entries.width;
    const std::size_t end = std::size_t{first_pieces[query + 1]} * entries.width;
    std::uint64_t last_key = ~std::uint64_t{0};
    std::uint32_t last_row = no_row;
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
    for (std::size_t base = begin; base < end; base += merge_threads) {
        const std::size_t i = base + threadIdx.x;
        bool wanted = i < end && i % entries.width < entries.counts[i / entries.width];
        const std::uint64_t key = wanted ? entries.keys[i] : 0;
        const std::uint32_t row = wanted ? entries.rows[i] : 0;
        wanted = wanted && (key < last_key || (key == last_key && row < last_row));
        const std::uint32_t place = take_place(wanted, &taken);
        if (wanted) {
            keys[place] = key;
            rows[place] = row;
        }
        __syncthreads();
        const std::uint32_t count = taken;
        if (count + merge_threads > merge_places) {
            sort_candidates<merge_threads>(static_cast<int>(count), keys, rows);
            if (count >= k) {
                last_key = keys[k - 1];
                last_row = rows[k - 1];
            }
            if (threadIdx.x == 0) taken = min(count, k);
        }
        __syncthreads();
    }
    const auto count = static_cast<int>(taken);
    sort_candidates<merge_threads>(count, keys, rows);
    emit_candidates<merge_threads>(count, keys, rows, query, k, out);
    if (threadIdx.x == 0) out.found[query] = min(taken, k);
}

// The values of some rows of a list; dead rows have none.
__global__ __launch_bounds__(threads) void value_list(CertainRows rows, const float* query, const std::uint32_t* list,
                                                      std::uint32_t count, double* values)
{
    const std::uint32_t at = blockIdx.x * (threads / 8) + threadIdx.x / 8;
    const double norm = norm_of(rows.resident, query);
    const std::uint32_t row = list[min(at, count - 1)];
    const double value = value_of(rows.resident, query, norm, row);
    if (at < count && threadIdx.x % 8 == 0)
        values[at] = is_dead(rows, row) ? __longlong_as_double(0x7FF8000000000000LL) : value;
}

struct ValueSpace {
    std::uint32_t* list;
    double* values;
    SelectionSpace selection;
};

ValueSpace lay_out_values(Carver& memory, std::size_t rows)
{
    ValueSpace space{};
    space.list = memory.take<std::uint32_t>(rows);
    space.values = memory.take<double>(rows);
    space.selection = take_selection_space(memory);
    return space;
}

// Small enough that few queries use all processors.
std::uint32_t choose_piece_rows(const Context& context, std::span<const RowList> lists, std::uint32_t k)
{
    std::size_t all = 0;
    for (const RowList& list : lists) all += list.size();
    const std::size_t blocks = static_cast<std::size_t>(context.multiprocessors()) * blocks_of_processor;
    const std::size_t fewest = std::bit_ceil(std::max(fewest_piece_rows, 2 * k));
    const std::size_t even = std::bit_floor(std::max<std::size_t>(all / blocks, 1));
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(even, fewest, most_piece_rows));
}

}  // namespace

bool serves_certain_rows(const Context& context, const ResidentRows& resident)
{
    return shared_bytes(resident.dimensions, most_piece_rows) <= context.shared_bytes_per_block();
}

CertainPlan plan_certain_rows(const Context& context, std::span<const RowList> lists, std::uint32_t k)
{
    CertainPlan plan;
    plan.count = static_cast<std::uint32_t>(lists.size());
    plan.k = k;
    plan.piece_rows = choose_piece_rows(context, lists, k);
    const auto layout = std::make_shared<const ListLayout>(lists, plan.piece_rows);
    plan.host_workspace = carved_bytes([&](Carver& memory) { lay_out(memory, *layout, k, false); });
    plan.workspace = carved_bytes([&](Carver& memory) { lay_out(memory, *layout, k, true); });
    plan.answers_on_device = true;
    plan.layout = layout;
    return plan;
}

void enqueue_certain_rows(const CertainRows& rows, const CertainPlan& plan, const Chunk& chunk, ThreadPool& pool)
{
    const ListLayout& layout = *plan.layout;
    Carver host(chunk.host_workspace);
    const Space written = lay_out(host, layout, plan.k, false);
    layout.copy_rows(written.lists, pool);
    std::copy(layout.pieces().begin(), layout.pieces().end(), written.pieces);
    std::copy(layout.first_pieces().begin(), layout.first_pieces().end(), written.first_pieces);
    send_written(chunk, written.written);

    Carver device(chunk.workspace);
    const Space space = lay_out(device, layout, plan.k, true);
    const ResidentRows& resident = rows.resident;
    const bool near = resident.metric != Metric::l1 && has_near_values(resident);
    const CompareJob job{rows, near, chunk.queries, space.lists, space.pieces, space.entries, plan.k, plan.piece_rows};
    const auto pieces = static_cast<std::uint32_t>(layout.pieces().size());
    const std::size_t piece_elements_read = std::size_t{plan.piece_rows} * resident.dimensions;
    const auto step = static_cast<std::uint32_t>(std::max<std::size_t>(launch_elements / piece_elements_read, 1));
    allow_shared_memory(compare_pieces);
    for (std::uint32_t first = 0; first < pieces; first += step) {
        compare_pieces<<<std::min(step, pieces - first), threads, shared_bytes(resident.dimensions, plan.piece_rows),
                         chunk.stream>>>(job, first);
        check_launch("comparing certain rows");
    }
    merge_pieces<<<plan.count, merge_threads, 0, chunk.stream>>>(space.entries, space.first_pieces, plan.k,
                                                                 chunk.answers);
    check_launch("merging certain rows");
}

ChunkPlan plan_certain_values(RowList list)
{
    ChunkPlan plan;
    plan.host_workspace = list.size_bytes();
    plan.workspace = carved_bytes([&](Carver& memory) { lay_out_values(memory, list.size()); });
    return plan;
}

void enqueue_certain_values(const CertainRows& rows, const ChunkPlan& plan, const Chunk& chunk, RowList list,
                            const RowCursor& after)
{
    Carver memory(chunk.workspace);
    const ValueSpace space = lay_out_values(memory, list.size());
    std::copy(list.begin(), list.end(), reinterpret_cast<std::uint32_t*>(chunk.host_workspace));
    send_written(chunk, list.size_bytes());
    const auto count = static_cast<std::uint32_t>(list.size());
    value_in_steps(count, 0, [&](std::uint32_t first, std::uint32_t some) {
        value_list<<<(some + threads / 8 - 1) / (threads / 8), threads, 0, chunk.stream>>>(
            rows, chunk.queries, space.list + first, some, space.values + first);
        check_launch("values of certain rows");
    });
    first_after({space.values, space.list, nullptr, count}, after, plan.k, space.selection, chunk.answers,
                chunk.stream);
}

}  // namespace pgwarp::cuda::rows
