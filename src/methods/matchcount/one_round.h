// The setting of a search that ends after one round of candidates.
#pragma once

namespace pgwarp
{

inline constexpr char matchcount_one_round[] = "one_round";  // 1: it does

}  // namespace pgwarp
