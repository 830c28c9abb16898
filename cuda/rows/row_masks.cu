#include "rows/row_masks.h"

#include <algorithm>

#include "device/error.h"
#include "distance/mask_place.h"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr int threads = 256;
constexpr std::uint32_t tile_positions = 128;
constexpr std::uint32_t blocks_of_processor = 16;
constexpr std::uint64_t launch_tests = std::uint64_t{1} << 28;  // of rows by predicates one by one

struct MaskJob {
    MaskedRows rows;
    const std::uint64_t* attributes;
    std::uint32_t columns;
    FilterView filters;  // `begins`: of distinct predicates
    std::uint32_t predicates;
    CodeTable tables[most_tables];
    std::uint32_t table_count;
    std::uint32_t entries;
    MaskSpace space;
};

// One warp a word: which of its rows live, and the places of their codes in the tables.
__global__ __launch_bounds__(threads) void place_codes(const MaskJob job)
{
    const std::uint32_t word = (blockIdx.x * threads + threadIdx.x) / 32;
    if (word >= job.rows.width()) return;
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t row = job.rows.order.row_of(masked_position(word, lane));
    const bool live =
        row < job.rows.order.rows && (job.rows.dead == nullptr || ((job.rows.dead[row / 64] >> (row % 64)) & 1U) == 0);
    const std::uint32_t lives = __ballot_sync(~0U, live);
    if (lane == 0) job.space.live[word] = lives;
    const std::uint64_t* own = job.attributes + std::size_t{live ? row : 0} * job.columns;
    for (std::uint32_t i = 0; i < job.table_count; ++i) {
        const CodeTable& table = job.tables[i];
        const std::uint64_t place = live ? own[table.column] - table.first : 0;
        job.space.codes[std::size_t{i} * job.rows.padded_positions + word * 32 + lane] =
            static_cast<std::uint16_t>(place);
    }
}

// The answers of a group's predicates, blockIdx.y, to the codes of a table.
__global__ __launch_bounds__(threads) void fill_table(const MaskJob job, std::uint32_t number)
{
    const CodeTable& table = job.tables[number];
    const std::uint32_t entry = blockIdx.x * threads + threadIdx.x;
    if (entry >= table.entries) return;
    const std::uint32_t first = blockIdx.y * group_predicates;
    const std::uint32_t count = min(group_predicates, job.predicates - first);
    std::uint32_t answers = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t* words = job.filters.words + job.filters.begins[first + i];
        answers |= admits_code(words, table.column, table.first + entry) ? 1U << i : 0U;
    }
    job.space.answers[std::size_t{blockIdx.y} * job.entries + table.begin + entry] = answers;
}

// Lane i gets bit i of the words of all lanes, that of lane j as bit j. All lanes call.
__device__ std::uint32_t transposed(std::uint32_t word)
{
    const std::uint32_t lane = threadIdx.x % 32;
    std::uint32_t low = 0x0000FFFFU;  // bits that stay in the lanes of the lower half
#pragma unroll
    for (std::uint32_t step = 16; step > 0; step /= 2) {
        const std::uint32_t other = __shfl_xor_sync(~0U, word, step);
        word = (lane & step) == 0 ? (word & low) | (other & low) << step : (word & ~low) | ((other >> step) & low);
        low ^= low << (step / 2);
    }
    return word;
}

// A group of predicates; `valid` are those that there are.
struct PredicateGroup {
    std::uint32_t number;
    std::uint32_t valid;
    std::uint32_t ranged;
    std::uint32_t tested;
};

// The predicates of `passed` whose range terms contain the row's codes. All lanes call.
__device__ std::uint32_t within_ranges(const MaskJob& job, const PredicateGroup& group, std::uint32_t row,
                                       std::uint32_t passed)
{
    const std::uint64_t* own = job.attributes + std::size_t{row} * job.columns;
    const RangeTerm* ranges = job.space.ranges + std::size_t{group.number} * group_predicates;
    std::uint32_t column = ~0U;
    std::uint64_t code = 0;
    for (std::uint32_t left = group.ranged; left != 0; left &= left - 1) {
        const int i = __ffs(static_cast<int>(left)) - 1;
        const RangeTerm range = ranges[i];
        if (range.column != column) {
            column = range.column;
            code = own[column];
        }
        if (code < range.first || code > range.last) passed &= ~(1U << i);
    }
    return passed;
}

// The predicates of a group that the calling lane's row of a word passes. All lanes call.
__device__ std::uint32_t answers_of(const MaskJob& job, const PredicateGroup& group, std::uint32_t word)
{
    const std::uint32_t lane = threadIdx.x % 32;
    const std::size_t place = std::size_t{word} * 32 + lane;
    const std::uint32_t* tables = job.space.answers + std::size_t{group.number} * job.entries;
    const bool live = ((job.space.live[word] >> lane) & 1U) != 0;
    std::uint32_t passed = live ? group.valid : 0;
    for (std::uint32_t i = 0; i < job.table_count; ++i) {
        passed &= tables[job.tables[i].begin + job.space.codes[i * std::size_t{job.rows.padded_positions} + place]];
    }
    if ((group.ranged | group.tested) == 0) return passed;
    const std::uint32_t row = live ? job.rows.order.row_of(masked_position(word, lane)) : 0;
    if (group.ranged != 0) passed = within_ranges(job, group, row, passed);
    for (std::uint32_t left = passed & group.tested; left != 0; left &= left - 1) {
        const int i = __ffs(static_cast<int>(left)) - 1;
        if (!job.filters.passes(group.number * group_predicates + i, row)) passed &= ~(1U << i);
    }
    return passed;
}

// Tiles [begin, end) of the masks of a group, blockIdx.y. A warp makes the four words of a tile of each mask.
__global__ __launch_bounds__(threads) void test_rows(const MaskJob job, std::uint32_t begin, std::uint32_t end)
{
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t first = blockIdx.y * group_predicates;
    const std::uint32_t count = min(group_predicates, job.predicates - first);
    const PredicateGroup group{blockIdx.y, count == 32 ? ~0U : (1U << count) - 1, job.space.ranged[blockIdx.y],
                               job.space.tested[blockIdx.y]};
    const std::size_t own = std::size_t{first + min(lane, count - 1)} * job.rows.width();
    for (std::uint32_t tile = begin + (blockIdx.x * threads + threadIdx.x) / 32; tile < end;
         tile += gridDim.x * (threads / 32)) {
        uint4 words;
        words.x = transposed(answers_of(job, group, 4 * tile));
        words.y = transposed(answers_of(job, group, 4 * tile + 1));
        words.z = transposed(answers_of(job, group, 4 * tile + 2));
        words.w = transposed(answers_of(job, group, 4 * tile + 3));
        if (lane < count) *reinterpret_cast<uint4*>(job.space.words + own + 4 * tile) = words;
    }
}

std::uint32_t parts(std::uint32_t count, std::uint32_t of)
{
    return (count + of - 1) / of;
}

}  // namespace

MaskSpace take_mask_space(Carver& memory, const DistinctFilters& filters, std::uint32_t padded_positions,
                          std::uint32_t slots, bool sent_alone)
{
    MaskSpace space{};
    space.filters = memory.take<std::byte>(filters.sent().bytes());
    space.ranged = memory.take<std::uint32_t>(filters.groups());
    space.tested = memory.take<std::uint32_t>(filters.groups());
    space.ranges = memory.take<RangeTerm>(filters.count());
    space.of_slot = memory.take<std::uint32_t>(slots);
    space.written = memory.used();
    if (sent_alone) return space;
    const std::size_t width = padded_positions / 32;
    space.live = memory.take<std::uint32_t>(width);
    space.codes = memory.take<std::uint16_t>(filters.tables().size() * padded_positions);
    space.answers = memory.take<std::uint32_t>(std::size_t{filters.groups()} * filters.entries());
    space.words = memory.take<std::uint32_t>(filters.count() * width);
    return space;
}

void write_masks(const DistinctFilters& filters, std::uint32_t slots, const MaskSpace& host, ThreadPool& pool)
{
    filters.sent().write(host.filters, pool);
    std::copy(filters.ranged().begin(), filters.ranged().end(), host.ranged);
    std::copy(filters.tested().begin(), filters.tested().end(), host.tested);
    std::copy(filters.ranges().begin(), filters.ranges().end(), host.ranges);
    const auto of_query = filters.of_query();
    const std::size_t queries = std::min<std::size_t>(of_query.size(), slots);
    std::copy_n(of_query.begin(), queries, host.of_slot);
    std::fill(host.of_slot + queries, host.of_slot + slots, 0U);
}

void make_masks(const MaskedRows& rows, const AttributeView& attributes, const DistinctFilters& filters,
                const MaskSpace& space, int multiprocessors, cudaStream_t stream)
{
    MaskJob job{};
    job.rows = rows;
    job.attributes = attributes.codes;
    job.columns = attributes.columns;
    job.filters = filters.sent().view(space.filters);
    job.predicates = filters.count();
    job.table_count = static_cast<std::uint32_t>(filters.tables().size());
    job.entries = filters.entries();
    job.space = space;
    std::copy(filters.tables().begin(), filters.tables().end(), job.tables);
    place_codes<<<parts(rows.width(), threads / 32), threads, 0, stream>>>(job);
    check_launch("placing codes");
    const std::uint32_t groups = filters.groups();
    for (std::uint32_t i = 0; i < job.table_count; ++i) {
        fill_table<<<dim3(parts(job.tables[i].entries, threads), groups), threads, 0, stream>>>(job, i);
        check_launch("answers of predicates");
    }
    const std::uint32_t tiles = rows.padded_positions / tile_positions;
    const std::uint64_t tests = filters.tested_count() * tile_positions;  // of a tile
    const auto step = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(launch_tests / (tests + 1), 1, tiles));
    const std::uint32_t blocks = parts(static_cast<std::uint32_t>(multiprocessors) * blocks_of_processor, groups);
    for (std::uint32_t begin = 0; begin < tiles; begin += step) {
        const std::uint32_t end = std::min(tiles, begin + step);
        const std::uint32_t most = parts(end - begin, threads / 32);
        test_rows<<<dim3(std::min(blocks, most), groups), threads, 0, stream>>>(job, begin, end);
        check_launch("masks of rows");
    }
}

}  // namespace pgwarp::cuda::rows
