// What clients that work at once measure.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace pgwarp::bench
{

struct Measurement {
    double queries_per_second = 0;
    double median_us = 0;
    double p99_us = 0;
    double engine_us = 0;  // mean of the engine's own times; 0 when it took no part
};

using Work = std::function<void(std::size_t)>;  // does the i-th piece of work

struct Load {
    int clients = 1;
    double seconds = 1;
    std::size_t warm_up = 10;  // pieces of each client: a prepared statement's plan settles after five
    std::size_t least = 5;     // pieces of each client, however long they take
};

// Run clients whose work `make` gives, all at once after each has warmed up.
Measurement run_clients(const Load& load, const std::function<Work()>& make);

// Of the microseconds of each client's pieces, and those from the first piece to the last.
Measurement summarise(const std::vector<std::vector<double>>& latencies, double elapsed_us);

double median(std::vector<double> values);
Measurement median_of(const std::vector<Measurement>& rounds);

}  // namespace pgwarp::bench
