// Additional inputs of an extending build for an index whose rows are linked with each other
// (MethodDescription::links_rows).
#pragma once

namespace pgwarp
{

// The dead rows, bit i of word i / 64 for row i: u64 [(rows + 63) / 64][1]. Without this array no row is dead.
inline constexpr char array_dead_rows[] = "dead_rows";

// Options that are set to 1.
inline constexpr char option_leave_out[] = "leave_out_dead";  // leave out dead rows and renumber the others
inline constexpr char option_measure[] = "measure_recall";    // also measure a curve of recall

// Also an option set to 1: the build makes a graph of a part of the delta. It extends no index, and its recall is not
// measured.
inline constexpr char option_part[] = "delta_part";

// Stored in the options of such an index: the number of its dead rows that merges have unlinked from the graph; and,
// once recall was measured again, the effort that a build of it needed.
inline constexpr char option_unlinked[] = "unlinked_rows";
inline constexpr char option_built_effort[] = "built_effort";

}  // namespace pgwarp
