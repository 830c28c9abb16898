// Loading rows and building indexes.
#pragma once

#include "clients.h"

namespace pgwarp::bench
{

struct Build {
    const Method* method;
    double seconds;          // median of the repeats
    double backend_peak_mb;  // highest private memory of the backend in any of them
    double engine_peak_mb;   // highest resident memory of the engine in any of them; 0 for pgvector
    double index_bytes;
    double load_seconds;  // COPY BINARY of the table, without its primary key
};

// Make each method's table and fill it.
double load_table(const Options& options, const Dataset& data, const Method& method);

// Build every index `build_repeats` times, one after the other in each round.
std::vector<Build> measure_builds(const Options& options, const Dataset& data, const std::vector<Method>& methods,
                                  const std::vector<double>& load_seconds);

}  // namespace pgwarp::bench
