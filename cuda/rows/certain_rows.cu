#include "rows/certain_rows.h"

#include <algorithm>
#include <bit>

#include "rows/piece_compare.cuh"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr int threads = compare_threads;
constexpr std::uint32_t fewest_piece_rows = 64;
constexpr std::uint32_t blocks_of_processor = 8;
// Of the queries of a chunk: rows of their lists, for whose places 32 bits must do.
constexpr std::size_t most_listed_rows = std::size_t{1} << 28;

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
    space.entries = take_entries(memory, layout.pieces().size(), k);
    return space;
}

// The pieces of lists.
struct ListedRows {
    const std::uint32_t* lists;
    const ListPiece* pieces;

    __device__ ListPiece piece(std::uint32_t number) const { return pieces[number]; }
    __device__ std::uint32_t row(const ListPiece& piece, std::uint32_t i) const { return lists[piece.first + i]; }
    __device__ bool passes(const ListPiece&, std::uint32_t) const { return true; }
    __device__ std::size_t place(const ListPiece&, std::uint32_t number) const { return number; }
};

__global__ __launch_bounds__(merge_threads) void merge_queries(Entries entries, const std::uint32_t* first_pieces,
                                                               std::uint32_t k, Answers out)
{
    __shared__ MergeShared shared;
    const std::uint32_t query = blockIdx.x;
    merge_pieces(entries, first_pieces[query], first_pieces[query + 1], query, k, shared, out);
}

// The values of some rows of a list; dead rows have none.
__global__ __launch_bounds__(threads) void value_list(CertainRows rows, const float* query, const std::uint32_t* list,
                                                      std::uint32_t count, double* values)
{
    const std::uint32_t at = blockIdx.x * (threads / 8) + threadIdx.x / 8;
    const double norm = norm_of(rows, query);
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

// As many queries as the bounds allow, at least one.
std::size_t queries_of_chunk(std::span<const RowList> lists, std::uint32_t piece_rows, std::uint32_t k)
{
    std::size_t entries = 0;
    std::size_t listed = 0;
    std::size_t count = 0;
    for (; count < lists.size(); ++count) {
        listed += lists[count].size();
        entries += (lists[count].size() / piece_rows + 1) * entries_of_piece(k);
        if (count > 0 && (listed > most_listed_rows || entries > most_entries)) break;
    }
    return count;
}

}  // namespace

bool serves_certain_rows(const Context& context, const ResidentRows& resident)
{
    return shared_bytes(resident.dimensions, most_piece_rows) <= context.shared_bytes_per_block();
}

CertainPlan plan_certain_rows(const Context& context, std::span<const RowList> lists, std::uint32_t k)
{
    CertainPlan plan;
    plan.piece_rows = choose_piece_rows(context, lists, k);
    lists = lists.first(queries_of_chunk(lists, plan.piece_rows, k));
    plan.count = static_cast<std::uint32_t>(lists.size());
    plan.k = k;
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
    const CompareJob job = job_of(rows, chunk.queries, space.entries, plan.k, plan.piece_rows);
    launch_comparison(job, ListedRows{space.lists, space.pieces}, static_cast<std::uint32_t>(layout.pieces().size()),
                      chunk.stream);
    merge_queries<<<plan.count, merge_threads, 0, chunk.stream>>>(space.entries, space.first_pieces, plan.k,
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
