// Names of the arrays that hold rows as vectors, the same in every method that keeps them.
#pragma once

namespace pgwarp
{

// f32 [rows][d]; of other types where rows are kept as they came (vector_array_type()).
inline constexpr char array_vectors[] = "vectors";
// f16 [rows][d], of the codec (numeric/half_codec.h) whose mean is f32 [1][d].
inline constexpr char array_half[] = "half";
inline constexpr char array_half_mean[] = "half_mean";
// f32 [1][2]: the codec's scale, and the largest error of a row.
inline constexpr char array_half_scale[] = "half_scale";

}  // namespace pgwarp
