// The command line of pgwarp_bench, and the data that it names.
#pragma once

#include <string>
#include <vector>

#include "ground_truth.h"

namespace pgwarp::bench
{

struct Options {
    std::string name = "data";
    std::vector<std::string> base_files;
    std::string query_file;
    std::string truth_file;
    std::string hdf5_file;
    std::string generate;  // ROWSxDIMENSIONS
    std::size_t raw_dimensions = 0;
    std::size_t rows = 0;
    std::size_t queries = 1000;
    std::string metric = "l2";
    std::size_t k = 10;
    std::vector<std::string> methods;
    std::vector<double> targets = {0.95, 0.99};
    std::vector<int> clients = {1, 16};
    int repeats = 5;
    int build_repeats = 3;
    double seconds = 2;
    int kills = 0;                // > 0: instead of searches, measure what follows the death of the engine
    double settle_seconds = 11;   // of life before each kill
    bool while_building = false;  // instead: one client while an index on another table is built
    std::string storage = "external";
    std::string pgwarp_database;
    std::string pgvector_database;
    std::string csv_file;
    std::string cache;
};

struct Dataset {
    Matrix<float> base;
    Matrix<float> queries;
    Metric metric = Metric::l2;
    GroundTruth truth;
};

// Nothing to run (help, or a mistake that was told): false, and `exit_code` is set.
bool parse_options(int argc, char** argv, Options& options, int& exit_code);

Dataset load_dataset(const Options& options);

}  // namespace pgwarp::bench
