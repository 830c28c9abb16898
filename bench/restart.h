// The time without answers to searches after the engine is killed.
#pragma once

#include "clients.h"

namespace pgwarp::bench
{

// Make and index a table for each method of pgwarp, kill the engine options.kills times for each, and print how long
// the next search of an open session took. An answer counts when its recall is not below that before the kill. Throws
// when a search fails or is wrong.
void measure_restarts(const Options& options, const Dataset& data);

}  // namespace pgwarp::bench
