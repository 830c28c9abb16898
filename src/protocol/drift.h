// Measures drift: how much larger the quantization error of an index is for new rows than for the rows of its training.
// The measurement is a calibrating build (BuildKind::calibrate) whose options have option_trained_rows. It gets every
// array of the index except the rows' addresses and attributes: arrays with one row for each row of the index are
// reduced to a sample of old rows; other arrays are whole. Its own rows are a sample of the new rows. It makes one
// array, array_drift.
#pragma once

#include <cstdint>

namespace pgwarp
{

inline constexpr char option_trained_rows[] = "trained_rows";  // number of rows that the quantizers were trained on

// u8 [1][sizeof(DriftReport)]
inline constexpr char array_drift[] = "drift";

// Mean squared distances of rows to their centroids, and to the vectors that their codes decode to. The latter are 0
// where codes are not compared.
struct DriftReport {
    double old_centroid;
    double old_code;
    double new_centroid;
    double new_code;
    std::uint64_t has_drifted;  // 1: the difference is significant and large enough to justify a new training; else 0
};

}  // namespace pgwarp
