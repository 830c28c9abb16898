// Some queries of a batch as a batch of their own.
#pragma once

#include <cstdint>
#include <span>

#include "methods/method.h"
#include "methods/rows/owned_rows.h"

namespace pgwarp
{

// The queries with these numbers, which ascend; copied into `memory` unless they are all.
SearchBatch pick(const SearchBatch& batch, std::span<const std::uint32_t> numbers, OwnedRows& memory);

}  // namespace pgwarp
