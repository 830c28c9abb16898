// Measuring drift: how much worse the quantizers of an index stand for new rows than for those that they were trained
// on. It is a calibrating build (BuildKind::calibrate) whose options have option_trained_rows. It is given every array
// of the index but the rows' addresses and attributes: of arrays with a row for each row of the index, those of a
// sample of old rows alone; the others whole. Its rows are a sample of the new ones. It makes one array, array_drift.
#pragma once

#include <cstdint>

namespace pgwarp
{

inline constexpr char option_trained_rows[] = "trained_rows";  // how many rows the quantizers were trained on

// u8 [1][sizeof(DriftReport)]
inline constexpr char array_drift[] = "drift";

// Mean squared distances of rows to their centroids, and to what their codes stand for; the latter are 0 where codes
// are not compared.
struct DriftReport {
    double old_centroid;
    double old_code;
    double new_centroid;
    double new_code;
    std::uint64_t has_drifted;  // 1: by more than chance, and by so much that another training is worth it; else 0
};

}  // namespace pgwarp
