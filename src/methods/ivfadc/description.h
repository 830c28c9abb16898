// Names of the stored arrays of ivfadc, which ivfadc.h describes, and values of its options.
#pragma once

namespace pgwarp
{

inline constexpr char array_centroids[] = "centroids";
inline constexpr char array_rotation[] = "rotation";
inline constexpr char array_rotation_signs[] = "rotation_signs";
inline constexpr char array_codebooks[] = "codebooks";
inline constexpr char array_list_of_row[] = "list_of_row";
inline constexpr char array_code_scale[] = "code_scale";
inline constexpr char array_codes[] = "codes";

// Values of the options `codes` and `refine`.
enum class IvfCodes { pq = 0, half = 1, int8 = 2 };
enum class IvfRefine { none = 0, half = 1, full = 2 };

}  // namespace pgwarp
