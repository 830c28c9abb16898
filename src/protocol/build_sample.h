// Builds whose rows stream: the engine is trained on a sample of the rows before these come.
//
// A BuildSample follows the BuildBeginReply. Where the engine wants a sample, the client may send it before the first
// rows: pieces of BuildArrayRequest, each an array of its own, array_sample_rows, in tid order and spread over the
// whole table; then array_sample_of, after which the engine is trained. Without array_sample_of rows are gathered.
#pragma once

#include <cstdint>

#include "protocol/format.h"

namespace pgwarp
{

struct BuildSample {
    std::uint64_t wanted_rows;  // 0: none
};

// u8 [rows][sizeof(Tid) + 4 dimensions]: a row's Tid, then its floats as rows of a build have them.
inline constexpr char array_sample_rows[] = "sample_rows";
// u64 [1][1]: the number of rows to come, as far as it is known.
inline constexpr char array_sample_of[] = "sample_of";

}  // namespace pgwarp
