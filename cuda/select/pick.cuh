// Indexing of registers at run time.
#pragma once

namespace pgwarp::cuda
{

// values[i], by halving: an index would move the array to local memory. count: a power of two.
template <int count>
__device__ __forceinline__ float pick(const float (&values)[count], unsigned i)
{
    static_assert((count & (count - 1)) == 0, "halved until one is left");
    if constexpr (count == 1) {
        return values[0];
    } else {
        float half[count / 2];
#pragma unroll
        for (int j = 0; j < count / 2; j++) half[j] = (i & (count / 2)) != 0 ? values[j + count / 2] : values[j];
        return pick<count / 2>(half, i);
    }
}

}  // namespace pgwarp::cuda
