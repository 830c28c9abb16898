#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "generated.h"
#include "hdf5_file.h"

namespace pgwarp::bench
{

namespace
{

// Sets the defaults that depend on the kind of run.
void set_defaults(Options& options)
{
    const bool batch = !options.batch_parts.empty();
    if (options.repeats <= 0) options.repeats = batch ? 3 : 5;
    if (options.targets.empty()) options.targets = batch ? std::vector{0.98} : std::vector{0.95, 0.99};
    if (options.clients.empty()) options.clients = batch ? std::vector{1, 64} : std::vector{1, 16};
    if (batch && options.methods.empty()) options.methods = {approximate_method().name, "pgvector-hnsw"};
}

}  // namespace

bool parse_options(int argc, char** argv, Options& options, int& exit_code)
{
    CLI::App app("Measure pgwarp through SQL, beside pgvector, on the same rows in the same run.");
    app.add_option("--name", options.name, "Name of the data in the results");
    app.add_option("--base", options.base_files, "Files of rows: fvecs, bvecs, u8 (raw), idx (*ubyte)");
    app.add_option("--query", options.query_file, "File of queries, same formats");
    app.add_option("--truth", options.truth_file, "ivecs of the true nearest rows; without it they are computed");
    app.add_option("--hdf5", options.hdf5_file, "File in the layout of ann-benchmarks, instead of the three above");
    app.add_option("--generate", options.generate, "ROWSxDIMENSIONS of generated embeddings, instead of files");
    app.add_option("--raw-dims", options.raw_dimensions, "Dimensions of raw files");
    app.add_option("--rows", options.rows, "Use only the first rows");
    app.add_option("--queries", options.queries, "Searches whose recall decides on settings, and which clients make")
        ->capture_default_str();
    app.add_option("--metric", options.metric, "l2, ip or cosine")->capture_default_str();
    app.add_option("-k", options.k, "Rows wanted")->capture_default_str()->check(CLI::Range(1, 1000));
    app.add_option("--methods", options.methods,
                   "Methods to measure, separated by commas (default: all; with --batch the first approximate one, "
                   "pgvector-hnsw)")
        ->delimiter(',');
    app.add_option("--targets", options.targets, "Recalls to reach (default: 0.95,0.99; with --batch 0.98)")
        ->delimiter(',');
    app.add_option("--clients", options.clients, "Numbers of clients (default: 1,16; with --batch 1,64)")
        ->delimiter(',');
    app.add_option("--repeats", options.repeats,
                   "Rounds of measuring; medians are reported (default: 5; with --batch 3)");
    app.add_option("--build-repeats", options.build_repeats, "Rounds of building")->capture_default_str();
    app.add_option("--seconds", options.seconds, "How long to measure each point in each round")->capture_default_str();
    app.add_option("--kills", options.kills,
                   "Instead: kill the engine so often, and measure how long the next search takes");
    app.add_option("--settle", options.settle_seconds, "Seconds that the engine lives before it is killed")
        ->capture_default_str();
    app.add_flag("--while-building", options.while_building,
                 "Instead: measure one client while indexes of another table are built");
    app.add_option("--while-inserting", options.inserts_per_second,
                   "Instead: measure one client while so many rows a second are inserted")
        ->check(CLI::PositiveNumber);
    app.add_option("--insert-seconds", options.insert_seconds, "With --while-inserting: for how long")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option(
           "--batch", options.batch_parts,
           "Instead: many searches at once: all, or some of join (lateral), filter (join with a filter that passes "
           "10 %), search (knn_search), clients (prepared searches), partitions (one search over all), "
           "knn_graph")
        ->delimiter(',')
        ->check(CLI::IsMember({"all", "join", "filter", "search", "clients", "partitions", "knn_graph"}));
    app.add_option("--batch-queries", options.batch_queries, "With --batch: outer rows of a join, queries of one call")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--partitions", options.partitions, "With --batch: number of partitions")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--partition-rows", options.partition_rows, "With --batch: rows of each partition")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--partition-methods", options.partition_methods, "With --batch: methods of the partitioned table")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option(
           "--settings", options.settings,
           "With --batch: 'METHOD NAME=VALUE...', settings that are not to be searched for; of the parts filter and "
           "partitions 'METHOD/PART NAME=VALUE...'; once for each")
        ->allow_extra_args(false);
    app.add_flag("--reuse", options.reuse, "With --batch: take tables and indexes that are there already");
    app.add_option("--storage", options.storage, "Storage of the column: external or plain")
        ->capture_default_str()
        ->check(CLI::IsMember({"external", "plain"}));
    app.add_option("--pgwarp", options.pgwarp_database, "Connection string of the database with pgwarp");
    app.add_option("--pgvector", options.pgvector_database, "Connection string of the database with pgvector");
    app.add_option("--csv", options.csv_file, "File that results are appended to");
    app.add_option("--cache", options.cache, "Folder that keeps computed ground truth");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        exit_code = app.exit(error);
        return false;
    }
    set_defaults(options);
    return true;
}

Dataset load_dataset(const Options& options)
{
    Dataset data;
    const std::size_t queries = std::max(options.queries, options.batch_parts.empty() ? 0 : options.batch_queries);
    Matrix<std::int32_t> ids;
    data.metric = parse_metric(options.metric);
    if (!options.generate.empty()) {
        std::size_t rows = 0;
        std::size_t columns = 0;
        if (std::sscanf(options.generate.c_str(), "%zux%zu", &rows, &columns) != 2 || rows == 0 || columns == 0) {
            throw std::runtime_error("--generate wants ROWSxDIMENSIONS");
        }
        Generated generated = generate_embeddings(rows, columns, queries);
        data.base = std::move(generated.base);
        data.queries = std::move(generated.queries);
    } else if (!options.hdf5_file.empty()) {
        AnnFile file = read_ann_file(options.hdf5_file, options.rows, queries);
        data.base = std::move(file.base);
        data.queries = std::move(file.queries);
        if (options.rows == 0) ids = std::move(file.neighbours);
    } else {
        for (const std::string& path : options.base_files) {
            if (options.rows != 0 && data.base.rows >= options.rows) break;
            append_rows(data.base, read_vectors(path, options.rows == 0 ? 0 : options.rows - data.base.rows,
                                                options.raw_dimensions));
        }
        data.queries = read_vectors(options.query_file, queries, options.raw_dimensions);
        if (!options.truth_file.empty()) ids = read_ids(options.truth_file, queries);
    }
    if (data.base.rows == 0 || data.queries.rows == 0) throw std::runtime_error("no rows or no queries");
    if (data.base.columns != data.queries.columns) throw std::runtime_error("rows and queries differ in dimensions");
    data.truth = ids.rows > 0 ? GroundTruth::given(data.base, data.queries, data.metric, ids)
                              : GroundTruth::compute(data.base, data.queries, data.metric,
                                                     std::max<std::size_t>(options.k, 100), options.cache);
    if (data.truth.k() < std::min(options.k, data.base.rows))
        throw std::runtime_error("the ground truth is shorter than k");
    return data;
}

}  // namespace pgwarp::bench
