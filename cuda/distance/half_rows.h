// The forms of rows that exact search reads beside the rows: for dot products and l2 halves, fp16 of (row - mean) *
// scale with a power-of-two scale; for every metric a summand of the score of each position. They are made when an
// index is loaded, and never stored.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "device/memory.h"
#include "distance/row_order.h"
#include "distance/score_bound.h"

namespace pgwarp::cuda
{

inline constexpr std::uint32_t tile_rows = 128;          // positions are padded to this
inline constexpr std::uint32_t tile_queries = 256;       // and slots of queries to this
inline constexpr std::uint32_t dimension_multiple = 64;  // and dimensions of halves to this, by zeros

template <class T>
constexpr T round_up(T value, T multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

// An array of this object, or one that is lent by another owner, which outlives this.
template <class T>
class KeptArray
{
public:
    KeptArray() = default;
    KeptArray(DeviceArray<T> own) : own_(std::move(own)), data_(own_.data()), count_(own_.size()) {}
    KeptArray(const T* lent, std::size_t count) : data_(const_cast<T*>(lent)), count_(count) {}

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return count_; }
    std::uint64_t own_bytes() const { return own_.bytes(); }

private:
    DeviceArray<T> own_;
    T* data_ = nullptr;
    std::size_t count_ = 0;
};

struct ScoredRows {
    RowOrder order;
    std::uint32_t dimensions = 0;
    std::uint32_t padded_dimensions = 0;  // of halves
    std::uint32_t padded_positions = 0;
    RowBounds bounds;
    double largest_element = 0;  // |element| of any row, as it is
    KeptArray<__half> halves;    // [padded_positions][padded_dimensions]; empty for float kinds
    DeviceArray<float>
        penalties;          // [padded_positions]: |y'|^2 / 2 for half_l2, else 0; +infinity where there is no row
    KeptArray<float> mean;  // [dimensions], half kinds

    std::uint64_t bytes() const { return halves.own_bytes() + penalties.bytes() + mean.own_bytes(); }
};

// rows: device, [count][dimensions], finite. kind must fit the metric. Waits for the stream (it reads back the bounds).
ScoredRows make_scored_rows(MemoryPool& pool, Metric metric, ScoreKind kind, const float* rows, std::uint32_t count,
                            std::uint32_t dimensions, cudaStream_t stream);

// Halves that rows are kept as: (row - mean) * scale, at the positions of the rows' numbers.
struct GivenHalves {
    const __half* rows = nullptr;  // [positions][dimensions]; dimensions: a multiple of dimension_multiple
    const float* mean = nullptr;   // [dimensions]
    float scale = 1;               // a power of two
    std::uint32_t count = 0;
    std::uint32_t positions = 0;  // count, or more
    std::uint32_t dimensions = 0;
};

// Scores of rows that are no more than their halves say. The halves and the mean are lent, and outlive this. Only by
// warp groups may the last tile of positions lie in part behind those that are given. Waits for the stream.
ScoredRows make_scored_halves(MemoryPool& pool, ScoreKind kind, const GivenHalves& given, cudaStream_t stream);

// out[p] = penalties[p], or +infinity where bit row_of(p) of `dead` is set. All on the device.
void mark_dead(const ScoredRows& rows, const std::uint64_t* dead, float* out, cudaStream_t stream);

// Queries as the kernels read them, in slots; slots past the last query find nothing.
struct PreparedQueries {
    std::uint32_t count = 0;
    std::uint32_t padded = 0;         // slots: a multiple of tile_queries
    __half* halves = nullptr;         // [padded][padded_dimensions], half kinds
    const float** floats = nullptr;   // [padded]: the query itself; a valid pointer in unused slots too
    float* factors = nullptr;         // [padded]: score = factor * product - penalty
    QueryBound* bounds = nullptr;     // [padded]
    std::uint32_t* usable = nullptr;  // [padded]: 0 = scores of this query may overflow
    float* copies = nullptr;          // [padded][dimensions]: `floats` point here; null: to the queries as given
    std::uint32_t* zeroed = nullptr;  // [3][padded]: set to zero, for counters of a search; or null
};

// Slot i gets query ids[i], or first + i where ids is null. queries: [][dimensions], on the device, or in page-locked
// memory if copies are made. Asynchronous.
void prepare_queries(const ScoredRows& rows, const float* queries, const std::uint32_t* ids, std::uint32_t first,
                     const PreparedQueries& prepared, cudaStream_t stream);

}  // namespace pgwarp::cuda
