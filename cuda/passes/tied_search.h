// Exact search for queries with more near rows than low precision can tell apart and than a slot has entries, for
// example copies of one row, such as the embeddings of an empty string. Such queries are searched together. A range of
// positions is no longer than a slot has entries, so no entry is lost. The rows of a range above the threshold get
// their canonical values, and the k nearest so far give the next threshold, by the same proof as elsewhere.
#pragma once

#include <cstdint>
#include <span>

#include "passes/dead_rows.h"
#include "passes/passes.h"

namespace pgwarp::cuda
{

// Whether the k nearest fit in a block's shared memory.
bool serves_tied(const Context& context, const ExactRows& rows, std::uint32_t k);

// Operands and answer on the device, as for search_exactly(). ids: the numbers of the queries, on the host. Sets
// found[] to not_proved for queries whose scores may overflow. May wait in between (pace.h), but not for the end.
// Throws std::bad_alloc, CudaError, and the exception of `cancel`.
void search_tied(Context& context, const ExactRows& rows, const float* queries, std::span<const std::uint32_t> ids,
                 const DeadRows& dead, const ExactAnswer& answer, const CancelToken* cancel, cudaStream_t stream);

}  // namespace pgwarp::cuda
