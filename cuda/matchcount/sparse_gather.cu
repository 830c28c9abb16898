#include "device/error.h"
#include "matchcount/sparse_gather.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

__global__ void gather(SparseSlots from, const std::uint32_t* ids, std::uint32_t count, std::uint32_t columns,
                       SparseSlots to)
{
    const std::uint32_t slot = blockIdx.x;
    const bool used = slot < count;
    const std::uint32_t id = used ? ids[slot] : 0;
    for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x)
        to.halves[std::size_t{slot} * columns + i] =
            used ? from.halves[std::size_t{id} * columns + i] : __float2half_rn(0);
    if (threadIdx.x != 0) return;
    to.factors[slot] = used ? from.factors[id] : 0;
    to.units[slot] = used ? from.units[id] : 0;
    to.usable[slot] = used ? from.usable[id] : 0;
    to.item_begins[slot] = used ? from.item_begins[id] : 0;
    to.item_counts[slot] = used ? from.item_counts[id] : 0;
}

}  // namespace

void gather_slots(const SparseSlots& from, const std::uint32_t* ids, std::uint32_t count, std::uint32_t padded,
                  std::uint32_t columns, const SparseSlots& to, cudaStream_t stream)
{
    gather<<<padded, 128, 0, stream>>>(from, ids, count, columns, to);
    check_launch("gathering queries");
}

}  // namespace pgwarp::cuda::matchcount
