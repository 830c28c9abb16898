// Names of the stored arrays of pqtree, which pqtree.h describes, and the ranges of its options.
#pragma once

#include <cstddef>

namespace pgwarp
{

inline constexpr char array_level1[] = "level1";
inline constexpr char array_level2[] = "level2";
inline constexpr char array_line_ends[] = "line_ends";
inline constexpr char array_line_places[] = "line_places";
inline constexpr char array_tree_codes[] = "codes";

// Limits of options.
inline constexpr std::size_t most_tree_parts = 4;
inline constexpr std::size_t most_level1 = 256;
inline constexpr std::size_t most_level2 = 256;
inline constexpr std::size_t most_leaves = 32768;  // of a part: k1 * k2. Bins then have 60 bits
inline constexpr std::size_t most_line_parts = 2048;

// Values of the option `refine`.
enum class TreeRefine { none = 0, half = 1, full = 2 };

}  // namespace pgwarp
