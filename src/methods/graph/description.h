// Names of the stored arrays of graph, which graph.h describes, and values of its options and settings.
#pragma once

namespace pgwarp
{

inline constexpr char array_seeds[] = "seeds";
inline constexpr char array_neighbours[] = "neighbours";
inline constexpr char array_edge_changes[] = "edge_changes";
inline constexpr char array_projection[] = "projection";
inline constexpr char array_bits[] = "bits";

// Values of the option `vectors`.
enum class GraphVectors { full = 0, half = 1, bits = 2 };

}  // namespace pgwarp
