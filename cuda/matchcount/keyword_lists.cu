// The construction of the lists: one stable radix sort a range, by keyword, of postings in row order.
#include "matchcount/keyword_lists.h"

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <vector>

#include "device/error.h"
#include "device/wait.h"
#include "matchcount/bank_order.h"
#include "matchcount/binary_search.cuh"
#include "methods/errors.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int threads = 256;
constexpr char purpose[] = "keyword lists";
constexpr char scratch_purpose[] = "building keyword lists";

// Largest numbers of the rows.
struct Largest {
    std::uint32_t row;  // keywords
    std::uint32_t keyword;
    std::uint32_t repeats;
};

unsigned blocks_for(std::uint64_t work)
{
    return static_cast<unsigned>(std::clamp<std::uint64_t>((work + threads - 1) / threads, 1, 4096));
}

__device__ std::uint64_t thread_number()
{
    return std::uint64_t{blockIdx.x} * threads + threadIdx.x;
}

__device__ std::uint64_t thread_count()
{
    return std::uint64_t{gridDim.x} * threads;
}

__device__ void raise(std::uint32_t* largest, std::uint32_t value)
{
    if (value > *reinterpret_cast<volatile std::uint32_t*>(largest)) atomicMax(largest, value);
}

__global__ __launch_bounds__(threads) void longest_row_kernel(DeviceKeywordRows rows, Largest* largest)
{
    std::uint64_t longest = 0;
    for (std::uint64_t row = thread_number(); row < rows.rows; row += thread_count())
        longest = max(longest, rows.offsets[row + 1] - rows.offsets[row]);
    raise(&largest->row, static_cast<std::uint32_t>(min(longest, std::uint64_t{UINT32_MAX})));
}

__global__ __launch_bounds__(threads) void largest_keyword_kernel(const std::uint32_t* keywords, std::uint64_t count,
                                                                  Largest* largest)
{
    std::uint32_t found = 0;
    for (std::uint64_t i = thread_number(); i < count; i += thread_count()) found = max(found, keywords[i]);
    raise(&largest->keyword, found);
}

// row_of[i] = the row of the i-th posting of rows [first, first + count), less first. A warp takes a row at a time.
__global__ __launch_bounds__(threads) void row_of_postings_kernel(const std::uint64_t* offsets, std::uint32_t count,
                                                                  std::uint16_t* row_of)
{
    const std::uint64_t begin = offsets[0];
    for (std::uint64_t row = thread_number() / 32; row < count; row += thread_count() / 32)
        for (std::uint64_t i = offsets[row] + threadIdx.x % 32; i < offsets[row + 1]; i += 32)
            row_of[i - begin] = static_cast<std::uint16_t>(row);
}

// positions[keyword] = the number of smaller keywords among the sorted ones, for all up to `universe`.
__global__ __launch_bounds__(threads) void dense_positions_kernel(const std::uint32_t* sorted, std::uint32_t count,
                                                                  std::uint32_t universe, std::uint32_t* positions)
{
    for (std::uint64_t keyword = thread_number(); keyword <= universe; keyword += thread_count())
        positions[keyword] =
            keyword == universe ? count : first_at_least(sorted, count, static_cast<std::uint32_t>(keyword));
}

__global__ __launch_bounds__(threads) void most_repeats_kernel(const std::uint32_t* sorted, const std::uint16_t* row_of,
                                                               std::uint32_t count, Largest* largest)
{
    std::uint32_t most = 0;
    for (std::uint64_t i = thread_number(); i < count; i += thread_count()) {
        const auto equal = [&](std::uint64_t j) { return sorted[j] == sorted[i] && row_of[j] == row_of[i]; };
        if (i > 0 && equal(i - 1)) continue;
        std::uint64_t end = i + 1;
        while (end < count && equal(end)) ++end;
        most = max(most, static_cast<std::uint32_t>(end - i));
    }
    raise(&largest->repeats, most);
}

// Scratch memory of CUB, which grows.
class Scratch
{
public:
    Scratch(MemoryPool& pool, cudaStream_t stream) : pool_(pool), stream_(stream) {}

    // call(memory, bytes) is a function of CUB.
    template <class Call>
    void run(const char* doing, const Call& call)
    {
        std::size_t bytes = 0;
        check(call(nullptr, bytes), doing);
        if (bytes > memory_.size()) {
            memory_ = {};
            memory_ = DeviceArray<std::byte>(pool_, bytes, scratch_purpose, stream_);
        }
        check(call(memory_.data(), bytes), doing);
    }

private:
    MemoryPool& pool_;
    cudaStream_t stream_;
    DeviceArray<std::byte> memory_;
};

// The keywords of one range that occur, and the starts of their lists.
struct SparseLists {
    DeviceArray<std::uint32_t> keywords;
    DeviceArray<std::uint32_t> positions;  // one more
};

class ListBuilder
{
public:
    ListBuilder(const DeviceKeywordRows& rows, MemoryPool& pool, const Context::Lease& stream)
        : rows_(rows), pool_(pool), stream_(stream), scratch_(pool, stream), largest_(pool, 1, scratch_purpose, stream)
    {
        check(cudaMemsetAsync(largest_.data(), 0, largest_.bytes(), stream_), "building keyword lists");
        read_range_starts();
    }

    std::uint32_t ranges() const { return static_cast<std::uint32_t>(starts_.size() - 1); }
    std::uint64_t postings() const { return starts_.back() - starts_.front(); }
    std::uint64_t start(std::uint32_t range) const { return starts_[range] - starts_.front(); }
    std::uint32_t postings_of(std::uint32_t range) const
    {
        return static_cast<std::uint32_t>(starts_[range + 1] - starts_[range]);
    }

    Largest largest()
    {
        Largest found{};
        read_back(&found, largest_.data(), sizeof(found), stream_, "reading the sizes of keyword lists");
        return found;
    }

    void measure_rows()
    {
        if (postings() == 0) return;
        longest_row_kernel<<<blocks_for(rows_.rows), threads, 0, stream_>>>(rows_, largest_.data());
        check_launch("longest row");
        largest_keyword_kernel<<<blocks_for(postings()), threads, 0, stream_>>>(rows_.keywords + starts_.front(),
                                                                                postings(), largest_.data());
        check_launch("largest keyword");
    }

    // Sorts the postings of a range by keyword and row, for the functions below.
    void sort_range(std::uint32_t range, unsigned bits)
    {
        reserve();
        const std::uint32_t first = range * range_rows;
        const std::uint32_t count = std::min(rows_.rows - first, range_rows);
        row_of_postings_kernel<<<blocks_for(std::uint64_t{count} * 32), threads, 0, stream_>>>(rows_.offsets + first,
                                                                                               count, row_of_.data());
        check_launch("rows of postings");
        scratch_.run("sorting postings", [&](void* memory, std::size_t& bytes) {
            return cub::DeviceRadixSort::SortPairs(memory, bytes, rows_.keywords + starts_[range], sorted_.data(),
                                                   static_cast<const std::uint16_t*>(row_of_.data()),
                                                   sorted_rows_.data(), postings_of(range), 0, static_cast<int>(bits),
                                                   stream_);
        });
        most_repeats_kernel<<<blocks_for(postings_of(range)), threads, 0, stream_>>>(
            sorted_.data(), sorted_rows_.data(), postings_of(range), largest_.data());
        check_launch("most repeats");
    }

    void write_dense_positions(std::uint32_t range, std::uint32_t universe, std::uint32_t* positions)
    {
        dense_positions_kernel<<<blocks_for(universe + std::uint64_t{1}), threads, 0, stream_>>>(
            sorted_.data(), postings_of(range), universe, positions);
        check_launch("positions of keywords");
    }

    void write_lists(std::uint32_t range, const std::uint32_t* positions, std::uint32_t lists,
                     std::uint16_t* list_array)
    {
        order_by_banks(sorted_rows_.data(), positions, lists, list_array, start(range), stream_);
    }

    SparseLists sparse_lists(std::uint32_t range)
    {
        const std::uint32_t count = postings_of(range);
        DeviceArray<std::uint32_t> keywords(pool_, count, scratch_purpose, stream_);
        DeviceArray<std::uint32_t> lengths(pool_, count + std::size_t{1}, scratch_purpose, stream_);
        DeviceArray<std::uint32_t> lists(pool_, 1, scratch_purpose, stream_);
        scratch_.run("finding keywords", [&](void* memory, std::size_t& bytes) {
            return cub::DeviceRunLengthEncode::Encode(memory, bytes, sorted_.data(), keywords.data(), lengths.data(),
                                                      lists.data(), count, stream_);
        });
        std::uint32_t found = 0;
        read_back(&found, lists.data(), sizeof(found), stream_, "reading the number of keywords");
        check(cudaMemsetAsync(lengths.data() + found, 0, sizeof(std::uint32_t), stream_), "positions of keywords");
        SparseLists result{DeviceArray<std::uint32_t>(pool_, found, purpose, stream_),
                           DeviceArray<std::uint32_t>(pool_, found + std::size_t{1}, purpose, stream_)};
        check(cudaMemcpyAsync(result.keywords.data(), keywords.data(), result.keywords.bytes(), cudaMemcpyDefault,
                              stream_),
              "copying keywords");
        // The sum before one more entry is the number of postings. CUB reads that entry too.
        scratch_.run("positions of keywords", [&](void* memory, std::size_t& bytes) {
            return cub::DeviceScan::ExclusiveSum(memory, bytes, lengths.data(), result.positions.data(),
                                                 found + std::uint32_t{1}, stream_);
        });
        return result;
    }

private:
    void read_range_starts()
    {
        const std::uint32_t ranges = (rows_.rows + range_rows - 1) / range_rows;
        starts_.assign(ranges + std::size_t{1}, 0);
        if (ranges == 0) return;
        check(
            cudaMemcpy2DAsync(starts_.data(), sizeof(std::uint64_t), rows_.offsets, range_rows * sizeof(std::uint64_t),
                              sizeof(std::uint64_t), ranges, cudaMemcpyDefault, stream_),
            "reading offsets");
        read_back(&starts_[ranges], rows_.offsets + rows_.rows, sizeof(std::uint64_t), stream_, "reading offsets");
        for (std::uint32_t range = 0; range < ranges; ++range)
            if (starts_[range + 1] - starts_[range] >= std::uint64_t{1} << 31)
                throw BadRequest("65536 rows have more than 2^31 keywords");
    }

    void reserve()
    {
        if (row_of_.size() > 0) return;
        std::uint32_t most = 1;
        for (std::uint32_t range = 0; range < ranges(); ++range) most = std::max(most, postings_of(range));
        row_of_ = DeviceArray<std::uint16_t>(pool_, most, scratch_purpose, stream_);
        sorted_rows_ = DeviceArray<std::uint16_t>(pool_, most, scratch_purpose, stream_);
        sorted_ = DeviceArray<std::uint32_t>(pool_, most, scratch_purpose, stream_);
    }

    const DeviceKeywordRows& rows_;
    MemoryPool& pool_;
    cudaStream_t stream_;
    Scratch scratch_;
    DeviceArray<Largest> largest_;
    DeviceArray<std::uint16_t> row_of_;
    DeviceArray<std::uint16_t> sorted_rows_;
    DeviceArray<std::uint32_t> sorted_;
    std::vector<std::uint64_t> starts_;  // offsets of the ranges
};

// Whether positions of all keywords in every range take no more memory than the postings.
bool is_dense(std::uint64_t universe, std::uint64_t ranges, std::uint64_t postings)
{
    return ranges * (universe + 1) * sizeof(std::uint32_t) <= postings * sizeof(std::uint16_t);
}

template <class T>
DeviceArray<T> sent(std::span<const T> values, MemoryPool& pool, cudaStream_t stream)
{
    DeviceArray<T> array(pool, values.size(), purpose, stream);
    send(array.data(), values.data(), array.bytes(), stream, "sending the starts of lists");
    return array;
}

template <class T>
void append(const DeviceArray<T>& part, DeviceArray<T>& whole, std::uint64_t at, cudaStream_t stream)
{
    check(cudaMemcpyAsync(whole.data() + at, part.data(), part.bytes(), cudaMemcpyDefault, stream), "copying lists");
}

}  // namespace

KeywordLists::KeywordLists(const DeviceKeywordRows& rows, MemoryPool& pool, const Context::Lease& stream)
    : rows_(rows.rows)
{
    ListBuilder builder(rows, pool, stream);
    builder.measure_rows();
    Largest largest = builder.largest();
    const std::uint32_t ranges = builder.ranges();
    std::vector<std::uint64_t> range_starts;
    for (std::uint32_t range = 0; range < ranges; ++range) range_starts.push_back(builder.start(range));
    range_starts.push_back(builder.postings());
    range_starts_ = sent(std::span<const std::uint64_t>(range_starts), pool, stream);
    list_array_ = DeviceArray<std::uint16_t>(pool, builder.postings(), purpose, stream);
    const std::uint64_t universe = std::uint64_t{largest.keyword} + 1;
    const bool dense = is_dense(universe, ranges, builder.postings());
    if (dense) universe_ = static_cast<std::uint32_t>(universe);
    if (dense) positions_ = DeviceArray<std::uint32_t>(pool, ranges * (universe + 1), purpose, stream);

    std::vector<SparseLists> parts;
    std::vector<std::uint64_t> list_starts{0};
    for (std::uint32_t range = 0; range < ranges; ++range) {
        builder.sort_range(range, static_cast<unsigned>(std::bit_width(largest.keyword | 1U)));
        if (dense) {
            std::uint32_t* positions = positions_.data() + range * (universe + 1);
            builder.write_dense_positions(range, universe_, positions);
            builder.write_lists(range, positions, universe_, list_array_.data());
        } else {
            parts.push_back(builder.sparse_lists(range));
            const auto lists = static_cast<std::uint32_t>(parts.back().keywords.size());
            builder.write_lists(range, parts.back().positions.data(), lists, list_array_.data());
            list_starts.push_back(list_starts.back() + lists);
        }
    }
    if (!dense) {
        list_starts_ = sent(std::span<const std::uint64_t>(list_starts), pool, stream);
        keywords_ = DeviceArray<std::uint32_t>(pool, list_starts.back(), purpose, stream);
        positions_ = DeviceArray<std::uint32_t>(pool, list_starts.back() + ranges, purpose, stream);
        for (std::uint32_t range = 0; range < ranges; ++range) {
            append(parts[range].keywords, keywords_, list_starts[range], stream);
            append(parts[range].positions, positions_, list_starts[range] + range, stream);
        }
    }
    largest = builder.largest();
    longest_row_ = largest.row;
    most_repeats_ = largest.repeats;
}

KeywordListsView KeywordLists::view() const
{
    KeywordListsView view;
    view.rows = rows_;
    view.ranges = static_cast<std::uint32_t>(range_starts_.size() == 0 ? 0 : range_starts_.size() - 1);
    view.universe = universe_;
    view.range_starts = range_starts_.data();
    view.list_starts = list_starts_.data();
    view.keywords = keywords_.data();
    view.positions = positions_.data();
    view.list_array = list_array_.data();
    return view;
}

std::uint64_t KeywordLists::memory_bytes() const
{
    return range_starts_.bytes() + list_starts_.bytes() + keywords_.bytes() + positions_.bytes() + list_array_.bytes();
}

}  // namespace pgwarp::cuda::matchcount
