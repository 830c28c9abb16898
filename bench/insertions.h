// Latencies of a searching client while other clients insert rows, and during the merges that follow.
#pragma once

#include "clients.h"

namespace pgwarp::bench
{

// For each of pgwarp's index methods: search with one client while nothing else happens for options.seconds, then while
// options.inserts_per_second rows a second are inserted for options.insert_seconds, each a transaction of its own;
// autovacuum and the merge worker run as usual. Prints latencies of the first, of each tenth of the second and of
// all of it, with the rows that waited in the delta logs, and the ratio of the 99th percentiles.
void measure_insertions(const Options& options, const Dataset& data);

}  // namespace pgwarp::bench
