#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "generated.h"
#include "hdf5_file.h"

namespace pgwarp::bench
{

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
    app.add_option("--queries", options.queries, "Use only the first queries")->capture_default_str();
    app.add_option("--metric", options.metric, "l2, ip or cosine")->capture_default_str();
    app.add_option("-k", options.k, "Rows wanted")->capture_default_str()->check(CLI::Range(1, 1000));
    app.add_option("--methods", options.methods, "Methods to measure, separated by commas (default: all)")
        ->delimiter(',');
    app.add_option("--targets", options.targets, "Recalls to reach")->delimiter(',')->capture_default_str();
    app.add_option("--clients", options.clients, "Numbers of clients")->delimiter(',')->capture_default_str();
    app.add_option("--repeats", options.repeats, "Rounds of measuring; medians are reported")->capture_default_str();
    app.add_option("--build-repeats", options.build_repeats, "Rounds of building")->capture_default_str();
    app.add_option("--seconds", options.seconds, "How long to measure each point in each round")->capture_default_str();
    app.add_option("--kills", options.kills,
                   "Instead: kill the engine so often, and measure how long the next search takes");
    app.add_option("--settle", options.settle_seconds, "Seconds that the engine lives before it is killed")
        ->capture_default_str();
    app.add_flag("--while-building", options.while_building,
                 "Instead: measure one client while indexes of another table are built");
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
    return true;
}

Dataset load_dataset(const Options& options)
{
    Dataset data;
    Matrix<std::int32_t> ids;
    data.metric = parse_metric(options.metric);
    if (!options.generate.empty()) {
        std::size_t rows = 0;
        std::size_t columns = 0;
        if (std::sscanf(options.generate.c_str(), "%zux%zu", &rows, &columns) != 2 || rows == 0 || columns == 0) {
            throw std::runtime_error("--generate wants ROWSxDIMENSIONS");
        }
        Generated generated = generate_embeddings(rows, columns, options.queries);
        data.base = std::move(generated.base);
        data.queries = std::move(generated.queries);
    } else if (!options.hdf5_file.empty()) {
        AnnFile file = read_ann_file(options.hdf5_file, options.rows, options.queries);
        data.base = std::move(file.base);
        data.queries = std::move(file.queries);
        if (options.rows == 0) ids = std::move(file.neighbours);
    } else {
        for (const std::string& path : options.base_files) {
            if (options.rows != 0 && data.base.rows >= options.rows) break;
            append_rows(data.base, read_vectors(path, options.rows == 0 ? 0 : options.rows - data.base.rows,
                                                options.raw_dimensions));
        }
        data.queries = read_vectors(options.query_file, options.queries, options.raw_dimensions);
        if (!options.truth_file.empty()) ids = read_ids(options.truth_file, options.queries);
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
