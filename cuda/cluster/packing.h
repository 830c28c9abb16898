// Rows and centroids as the assignment kernels take them: binary16 tiles in the very image that shared memory holds,
// so that one bulk copy brings a tile.
//
// Rows move into a frame first (moved to where the centroids surround the origin, scaled to the order of one); each row
// then gets a power of two of its own, so that rows of any magnitude keep 11 bits (22 with the low part). Centroids
// share one power of two. Scores come out multiplied by both, which changes no order within a row.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>

#include "device/context.h"

namespace pgwarp::cuda
{

// A tile is stored as [part: high, low][chunk of 64 dimensions][row][64], each row's 128 bytes swizzled in units of 16
// bytes by the row number's low three bits (the hardware's 128-byte swizzle).
inline constexpr int row_tile = 256;
inline constexpr int centroid_tile = 128;
inline constexpr int chunk_width = 64;

inline std::size_t chunks_of(std::size_t dimensions)
{
    return (dimensions + chunk_width - 1) / chunk_width;
}

// A frame's numbers on the device.
struct FrameView {
    const float* origin;  // [dimensions], scaled already
    const float* scale;   // [1], a power of two
};

// The space in which centroids surround the origin and are of the order of one. Origin and scale stay on the device.
class Frame
{
public:
    Frame(Context& context, std::size_t dimensions, cudaStream_t stream);
    // centroids: device [count][dimensions]. centred = false keeps the origin (inner products).
    void fit(const float* centroids, std::size_t count, bool centred, cudaStream_t stream);

    std::size_t dimensions() const { return dimensions_; }
    const float* origin() const { return origin_.data(); }
    const float* scale() const { return scale_.data(); }
    FrameView view() const { return {origin(), scale()}; }

private:
    std::size_t dimensions_;
    DeviceArray<double> partial_;
    DeviceArray<unsigned> largest_;
    DeviceArray<float> origin_;
    DeviceArray<float> scale_;
};

struct PackedRowsView {
    const __half* tiles;
    const float* scale;  // each row's power of two
    std::size_t count;
};

class PackedRows
{
public:
    // parts: 1 (high) or 2 (high and low).
    PackedRows(Context& context, std::size_t capacity, std::size_t dimensions, int parts, cudaStream_t stream);
    // rows: device [count][dimensions], count <= capacity.
    void pack(const float* rows, std::size_t count, const Frame& frame, cudaStream_t stream);
    PackedRowsView view(std::size_t first, std::size_t count) const;  // first: a multiple of row_tile

private:
    std::size_t dimensions_;
    int parts_;
    std::size_t chunks_;
    DeviceArray<__half> tiles_;
    DeviceArray<float> scale_;
};

struct PackedCentroidsView {
    const __half* tiles;
    const float* half_norms;  // [tiles][centroid_tile]; huge where there is no centroid, 0 for inner products
    int tile_count;
};

class PackedCentroids
{
public:
    PackedCentroids(Context& context, std::size_t count, std::size_t dimensions, int parts, cudaStream_t stream);
    // centroids: device [count][dimensions]. dot: rank by inner product alone.
    void pack(const float* centroids, const Frame& frame, bool dot, cudaStream_t stream);
    PackedCentroidsView view() const;
    std::size_t count() const { return count_; }

private:
    std::size_t count_;
    std::size_t dimensions_;
    int parts_;
    std::size_t chunks_;
    DeviceArray<__half> tiles_;
    DeviceArray<float> half_norms_;
    DeviceArray<unsigned> largest_;
};

}  // namespace pgwarp::cuda
