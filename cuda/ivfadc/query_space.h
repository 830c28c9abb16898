// The space in which an inverted file scans its rows.
#pragma once

#include "ivfadc/view.h"
#include "rows/queries.h"

namespace pgwarp::cuda::ivfadc
{

inline QuerySpace space_of_rows(const MirrorView& mirror)
{
    if (!mirror.scans_residuals()) return space_of(mirror.metric, mirror.half);
    const bool squared = mirror.metric == Metric::l2;
    QuerySpace space{.factor = squared ? 2.0F : 1.0F};
    if (mirror.scans_codes) {
        space.rotation = mirror.code.rotation;
        space.signs = mirror.code.signs;
        space.factor /= mirror.code.half_scale;
    } else if (squared) {
        space.mean = mirror.centres.half.mean;
    }
    return space;
}

}  // namespace pgwarp::cuda::ivfadc
