// The nearest of the 256 codewords of one part for a few rows a thread: values in registers, the codebook in shared
// memory, read by all lanes at once. Shared by training and encoding.
#pragma once

#include "cluster/device_math.cuh"

namespace pgwarp::cuda
{

inline constexpr int codewords = 256;
inline constexpr int widest_part = 32;

// A codebook of one part, each codeword padded with zeros to `padded` values, and half their squared norms.
template <int padded>
struct SharedCodebook {
    float values[codewords][padded];
    float half_norms[codewords];
};

// Loads [256][width], times `scale`, by all threads of the block; synchronizes.
template <int padded>
__device__ inline void load_codebook(SharedCodebook<padded>& shared, const float* codebook, int width, float scale)
{
    for (int at = threadIdx.x; at < codewords * padded; at += blockDim.x) {
        const int word = at / padded;
        const int e = at % padded;
        shared.values[word][e] = e < width ? framed(codebook[word * width + e], scale, 0) : 0.0F;
    }
    __syncthreads();
    for (int word = threadIdx.x; word < codewords; word += blockDim.x) {
        float sum = 0;
        for (int e = 0; e < padded; ++e) sum = fmaf(shared.values[word][e], shared.values[word][e], sum);
        shared.half_norms[word] = sum / 2;
    }
    __syncthreads();
}

// The lanes whose label is the caller's.
__device__ inline unsigned same_label(unsigned label)
{
    return __match_any_sync(~0U, label);
}

template <int padded, int rows>
__device__ inline void score_codeword(const SharedCodebook<padded>& book, int word, const float (&values)[rows][padded],
                                      float (&score)[rows])
{
#pragma unroll
    for (int r = 0; r < rows; ++r) score[r] = book.half_norms[word];
#pragma unroll
    for (int e = 0; e < padded; ++e) {
        const float value = book.values[word][e];
#pragma unroll
        for (int r = 0; r < rows; ++r) score[r] = fmaf(-values[r][e], value, score[r]);
    }
}

// Minima run faster than comparisons that carry an index. So the loop remembers the group of eight codewords with the
// best score, and the group is scored once more by the same operations.
template <int padded, int rows>
__device__ inline void nearest_codewords(const SharedCodebook<padded>& book, const float (&values)[rows][padded],
                                         int (&code)[rows])
{
    constexpr int together = 8;
    float best[rows];
    int group[rows];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        best[r] = __uint_as_float(0x7F800000U);
        group[r] = 0;
    }
#pragma unroll 1
    for (int first = 0; first < codewords; first += together) {
        float low[rows];
#pragma unroll
        for (int w = 0; w < together; ++w) {
            float score[rows];
            score_codeword(book, first + w, values, score);
#pragma unroll
            for (int r = 0; r < rows; ++r) low[r] = w == 0 ? score[r] : fminf(low[r], score[r]);
        }
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            group[r] = low[r] < best[r] ? first : group[r];
            best[r] = fminf(best[r], low[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        code[r] = group[r];
        const float(&own)[1][padded] = reinterpret_cast<const float(&)[1][padded]>(values[r]);
#pragma unroll 1
        for (int w = together - 1; w >= 0; --w) {
            float score[1];
            score_codeword(book, group[r] + w, own, score);
            if (score[0] == best[r]) code[r] = group[r] + w;
        }
    }
}

}  // namespace pgwarp::cuda
