// Results as CSV and as tables.
#pragma once

#include "batch_work.h"
#include "builds.h"
#include "tune.h"

namespace pgwarp::bench
{

struct Result {
    const Point* point;
    int clients;
    Measurement measured;  // medians of the rounds
};

struct Report {
    const Options& options;
    const Dataset& data;
    std::vector<Build> builds;
    std::vector<Result> results;
    Measurement look_up_pgwarp;
    Measurement look_up_pgvector;
};

// Append the rows to options.csv_file; a new file gets a header.
void write_csv(const Report& report);
void write_batch_csv(const Options& options, const Dataset& data, const std::vector<BatchWork>& works);

// Print the tables, with ratios against the better of pgvector's indexes.
void print_tables(const Report& report);

}  // namespace pgwarp::bench
