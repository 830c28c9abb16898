// The command line of pgwarp_bench, and the data that it names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "described.h"
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
    std::vector<double> targets;
    std::vector<int> clients;
    int repeats = 0;
    int build_repeats = 3;
    double seconds = 2;
    int kills = 0;                  // > 0: instead of searches, measure the recovery from the engine's death
    double settle_seconds = 11;     // of life before each kill
    bool while_building = false;    // run one client while an index on another table is built, instead of searches
    double inserts_per_second = 0;  // > 0: run one client while rows are inserted, instead of searches
    double insert_seconds = 600;
    std::vector<std::string> batch_parts;  // not empty: measure these forms of many searches at once instead
    std::vector<std::string> partition_methods = {complete_method().name, "pgvector-hnsw"};
    std::size_t batch_queries = 10000;  // searches of a join and of one call
    std::size_t partitions = 1000;      // of that many rows each as partition_rows
    std::size_t partition_rows = 1000;
    std::vector<std::string> settings;  // METHOD NAME=VALUE ...: settings given instead of found
    bool reuse = false;                 // existing tables and indexes stay, and are measured
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
    GroundTruth filtered_truth;  // among the rows of kind 0; empty where nothing is filtered
};

// Each row is of one of ten kinds, by a hash of its number.
constexpr int kinds = 10;
constexpr int kind_of(std::size_t row)
{
    return static_cast<int>((static_cast<std::uint32_t>(row) * 2654435761U >> 16) % kinds);
}

// False, with `exit_code` set, when there is nothing to run: after --help, or after an error that was printed.
bool parse_options(int argc, char** argv, Options& options, int& exit_code);

Dataset load_dataset(const Options& options);

}  // namespace pgwarp::bench
