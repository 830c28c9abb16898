// What an extending build is given besides the arrays of its index, where the rows of that are linked with each other
// (MethodDescription::links_rows).
#pragma once

namespace pgwarp
{

// Which rows are dead, bit i of word i / 64 for row i: u64 [(rows + 63) / 64][1]. It may be left out: then none is.
inline constexpr char array_dead_rows[] = "dead_rows";

// Set to 1 in the options of the build.
inline constexpr char option_leave_out[] = "leave_out_dead";  // number the rows anew, without the dead ones
inline constexpr char option_measure[] = "measure_recall";    // make a curve of recall as well

// Likewise: there is no index. A graph of the given rows alone is made, whose recall nobody measures.
inline constexpr char option_alone[] = "rows_alone";

// Kept in the options of such an index: how many of its dead rows merges have taken out of the graph, and, once recall
// was measured anew, the effort that a build of it needed.
inline constexpr char option_unlinked[] = "unlinked_rows";
inline constexpr char option_built_effort[] = "built_effort";

}  // namespace pgwarp
