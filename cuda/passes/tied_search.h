// Exact search for queries near so many rows that low precision can't tell apart that there is no room for them among
// the proposals of other searches: copies of one row, as the embeddings of an empty string are. Such queries go
// together. Ranges of positions are no longer than a slot has entries, so none is ever lost; of each range the rows
// above the threshold get their canonical values, and the k nearest so far give the next threshold, by the same proof.
#pragma once

#include <cstdint>
#include <span>

#include "passes/dead_rows.h"
#include "passes/passes.h"

namespace pgwarp::cuda
{

// Whether the k nearest are few enough to be kept in a block's shared memory.
bool serves_tied(const Context& context, const ExactRows& rows, std::uint32_t k);

// Operands and answer on the device, as for search_exactly(); ids: of the queries, on the host. found[] says not_proved
// for queries of which scores may overflow. Waits in between where that is much work, not for its end.
void search_tied(Context& context, const ExactRows& rows, const float* queries, std::span<const std::uint32_t> ids,
                 const DeadRows& dead, const ExactAnswer& answer, const CancelToken* cancel, cudaStream_t stream);

}  // namespace pgwarp::cuda
