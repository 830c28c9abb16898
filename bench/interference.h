// Latencies of a client of one table during index builds on another.
#pragma once

#include "clients.h"

namespace pgwarp::bench
{

// Make two tables; search the first with one client while nothing else happens, and while an index on the second is
// built over and over, in turns, options.repeats times each; print latencies and the ratio of the 99th percentiles.
void measure_interference(const Options& options, const Dataset& data);

}  // namespace pgwarp::bench
