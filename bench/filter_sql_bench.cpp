// Measures searches with conditions through SQL: pgwarp with filter columns and with the filter above its indexes,
// beside PostgreSQL's own plan and pgvector's indexes. bench/filters runs it.
//
// Each condition passes a share of the rows: of any place, of the query's own cluster, or of the cluster that is
// farthest from it. Each plan is tried with settings that are more and more thorough until it has the recall wanted;
// the first of them that has it is then measured with many clients.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>

#include "database.h"
#include "filter_data.h"
#include "filter_plans.h"
#include "generated.h"
#include "measurement.h"

namespace
{

using namespace pgwarp::bench;
using Clock = std::chrono::steady_clock;

struct Options {
    std::string name = "embedding";
    std::string generate = "200000x384";
    std::vector<std::string> base_files;
    std::string query_file;
    std::size_t raw_dimensions = 0;
    std::size_t queries = 100;
    std::size_t k = 10;
    std::vector<double> shares{1, 0.5, 0.1, 0.01, 0.001, 0.0001};
    std::vector<std::string> methods;
    std::string filtering;
    double recall = 0.99;
    double seconds = 0.4;
    int clients = 64;
    std::string pgwarp;
    std::string pgvector;
    std::string csv_file;

    const std::string& connection(Server server) const { return server == Server::pgwarp ? pgwarp : pgvector; }
};

// A query so slow makes many clients wait for a queue: a few of them use all cores as well.
constexpr double slow_us = 10e3;
constexpr int clients_of_slow = 8;
// A setting that takes so many times as long as a plan that has the recall is no use, nor is a more thorough one; nor
// are many clients with one that takes so long.
constexpr double hopeless = 5;
constexpr double most_us = 200e3;

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Cell {
    std::size_t condition = 0;
    Settings settings;
    double recall = 0;
    std::size_t queries = 0;
    Measurement measured;
};

class FilterBench
{
public:
    FilterBench(const Options& options, const FilterData& data) : options_(options), data_(data)
    {
        file_ = std::fopen(options.csv_file.c_str(), "a");
        if (file_ == nullptr) throw std::runtime_error("cannot write " + options.csv_file);
        if (std::ftell(file_) == 0) {
            std::fprintf(file_,
                         "kind,data,rows,dimensions,method,filter,share,where,settings,clients,k,queries,recall,"
                         "queries_per_second,median_us,p99_us,build_seconds,index_bytes\n");
        }
    }
    ~FilterBench() { std::fclose(file_); }
    FilterBench(const FilterBench&) = delete;
    FilterBench& operator=(const FilterBench&) = delete;

    void load(Server server) const;
    void measure(const FilterPlan& plan);

private:
    const std::string& connection(Server server) const { return options_.connection(server); }
    void build(const FilterPlan& plan);
    std::shared_ptr<Database> prepared(const FilterPlan& plan, const Settings& settings, std::size_t condition);
    std::vector<std::int32_t> search(Database& database, std::size_t condition, std::size_t query) const;
    void measure_condition(const FilterPlan& plan, std::size_t condition);
    Cell measure_one(const FilterPlan& plan, std::size_t condition, const Settings& settings);
    Measurement measure_many(const FilterPlan& plan, const Cell& cell, int clients);
    void write_search(const FilterPlan& plan, const Cell& cell, int clients, const Measurement& measured) const;

    const Options& options_;
    const FilterData& data_;
    std::FILE* file_ = nullptr;
    std::map<Server, std::vector<std::string>> built_;             // the indexes that are there
    std::map<std::pair<Server, std::size_t>, double> fastest_us_;  // of a condition, at the recall wanted
    std::map<Server, std::deque<std::shared_ptr<Database>>> idle_;
};

// Numbers as an array in SQL.
std::string array_of(const std::vector<std::int32_t>& numbers)
{
    std::string out = "'{";
    for (const std::int32_t number : numbers) out += std::to_string(number) + ",";
    out.back() = '}';
    return out + "'::int[]";
}

void FilterBench::load(Server server) const
{
    Database database(connection(server));
    database.run("CREATE TABLE loaded (id int, kind int, v vector)");
    database.copy_rows("loaded", data_.base, 0, data_.base.rows);
    database.run("CREATE TABLE items (id int, number int, region int, price float8, day date, v vector(" +
                 std::to_string(data_.base.columns) + "))");
    database.run(
        "INSERT INTO items SELECT id, number, region, id::bigint * 7919 % 10007 / 100.0, date '2020-01-01' + id % "
        "2000, v "
        "FROM loaded JOIN unnest(" +
        array_of(data_.number) + ", " + array_of(data_.region) +
        ") WITH ORDINALITY a(number, region, place) ON place = id + 1 ORDER BY id");
    database.run("DROP TABLE loaded");
    database.run("VACUUM ANALYZE items");
}

void FilterBench::build(const FilterPlan& plan)
{
    std::vector<std::string>& built = built_[plan.server];
    if (built == plan.create) return;
    Database database(connection(plan.server));
    for (const std::string& index :
         database.column("SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'items'::regclass"))
        database.run("DROP INDEX " + index);
    const auto start = Clock::now();
    for (const std::string& sql : plan.create) database.run(sql);
    const double seconds = seconds_since(start);
    built = plan.create;
    const std::string bytes = database.value("SELECT pg_indexes_size('items')");
    std::fprintf(file_, "build,%s,%zu,%zu,%s,%s,,,,,,,,,,,%.2f,%s\n", data_.name.c_str(), data_.base.rows,
                 data_.base.columns, plan.method.c_str(), plan.filtering.c_str(), seconds, bytes.c_str());
    std::fflush(file_);
    database.run("CHECKPOINT");
}

std::shared_ptr<Database> FilterBench::prepared(const FilterPlan& plan, const Settings& settings, std::size_t condition)
{
    auto& idle = idle_[plan.server];
    std::shared_ptr<Database> database;
    if (idle.empty()) {
        database = std::make_shared<Database>(connection(plan.server));
        // The library has its settings once it is loaded.
        database->run("SELECT '[1]'::vector");
    } else {
        database = idle.front();
        idle.pop_front();
    }
    std::string sql = "RESET ALL; DEALLOCATE ALL; SET client_min_messages = warning";
    for (const Settings* some : {&plan.always, &settings}) {
        for (const auto& [name, value] : *some) sql += "; SET " + name + " = " + value;
    }
    database->run(sql);
    database->prepare("search", "SELECT id FROM items" + data_.conditions[condition].text() +
                                    " ORDER BY v <-> $1 LIMIT " + std::to_string(options_.k));
    return database;
}

std::vector<std::int32_t> FilterBench::search(Database& database, std::size_t condition, std::size_t query) const
{
    const Condition& asked = data_.conditions[condition];
    if (asked.where == Where::all) return database.search("search", data_.queries.row(query));
    return database.search("search", data_.queries.row(query), asked.ranges[query]);
}

// One client: all queries in turn, again and again while there is time. Recall is that of the first time.
Cell FilterBench::measure_one(const FilterPlan& plan, std::size_t condition, const Settings& settings)
{
    constexpr std::size_t warm_up = 6;
    const std::shared_ptr<Database> database = prepared(plan, settings, condition);
    auto start = Clock::now();
    for (std::size_t i = 0; i < warm_up && seconds_since(start) < options_.seconds; ++i)
        search(*database, condition, data_.queries.rows - 1 - i % data_.queries.rows);
    std::vector<std::vector<std::int32_t>> answers;
    std::vector<std::vector<double>> latencies(1);
    start = Clock::now();
    for (std::size_t i = 0;; ++i) {
        const double elapsed = seconds_since(start);
        if ((elapsed >= options_.seconds && i >= 10) || (elapsed >= 4 * options_.seconds && i >= 3)) break;
        const auto before = Clock::now();
        std::vector<std::int32_t> ids = search(*database, condition, i % data_.queries.rows);
        latencies[0].push_back(seconds_since(before) * 1e6);
        if (i < data_.queries.rows) answers.push_back(std::move(ids));
    }
    Cell cell{condition, settings, 0, answers.size(), {}};
    double busy = 0;
    for (const double latency : latencies[0]) busy += latency;
    cell.measured = summarise(latencies, busy);
    for (std::size_t q = 0; q < answers.size(); ++q) cell.recall += recall_of(data_, condition, q, answers[q]);
    cell.recall /= static_cast<double>(answers.size());
    idle_[plan.server].push_front(database);
    return cell;
}

Measurement FilterBench::measure_many(const FilterPlan& plan, const Cell& cell, int clients)
{
    std::vector<std::shared_ptr<Database>> used;
    Load load{clients, options_.seconds, 6, 1};
    if (cell.measured.median_us > slow_us / 2) load.warm_up = 1;
    const Measurement measured = run_clients(load, [&]() -> Work {
        used.push_back(prepared(plan, cell.settings, cell.condition));
        return [this, &cell, database = used.back()](std::size_t i) {
            search(*database, cell.condition, i % data_.queries.rows);
        };
    });
    for (const auto& database : used) idle_[plan.server].push_back(database);
    return measured;
}

void FilterBench::measure_condition(const FilterPlan& plan, std::size_t condition)
{
    const auto key = std::pair(plan.server, condition);
    const Cell* best = nullptr;
    std::vector<Cell> cells;
    cells.reserve(plan.sweep.size());
    for (const Settings& settings : plan.sweep) {
        cells.push_back(measure_one(plan, condition, settings));
        const Cell& cell = cells.back();
        write_search(plan, cell, 1, cell.measured);
        const double us = cell.measured.median_us;
        if (best == nullptr || cell.recall > best->recall) best = &cell;
        const auto fastest = fastest_us_.find(key);
        if (cell.recall >= options_.recall) {
            if (fastest == fastest_us_.end() || us < fastest->second) fastest_us_[key] = us;
            break;
        }
        if (us > most_us) break;
        if (plan.server == Server::pgvector && fastest != fastest_us_.end() && us > hopeless * fastest->second) break;
    }
    if (best->measured.median_us > most_us) return;
    const int clients =
        best->measured.median_us > slow_us ? std::min(clients_of_slow, options_.clients) : options_.clients;
    write_search(plan, *best, clients, measure_many(plan, *best, clients));
}

void FilterBench::write_search(const FilterPlan& plan, const Cell& cell, int clients, const Measurement& measured) const
{
    const Condition& condition = data_.conditions[cell.condition];
    std::fprintf(file_, "search,%s,%zu,%zu,%s,%s,%g,%s,%s,%d,%zu,%zu,%.4f,%.1f,%.1f,%.1f,,\n", data_.name.c_str(),
                 data_.base.rows, data_.base.columns, plan.method.c_str(), plan.filtering.c_str(), condition.share,
                 name_of(condition.where), describe(cell.settings).c_str(), clients, options_.k, cell.queries,
                 cell.recall, measured.queries_per_second, measured.median_us, measured.p99_us);
    std::fflush(file_);
}

void FilterBench::measure(const FilterPlan& plan)
{
    const auto start = Clock::now();
    build(plan);
    const double build_seconds = seconds_since(start);
    for (std::size_t c = 0; c < data_.conditions.size(); ++c) measure_condition(plan, c);
    std::printf("%-18s %-18s index %6.1f s, searches %6.1f s\n", plan.method.c_str(), plan.filtering.c_str(),
                build_seconds, seconds_since(start) - build_seconds);
    std::fflush(stdout);
}

FilterData load_data(const Options& options)
{
    FilterData data;
    data.name = options.name;
    if (options.base_files.empty()) {
        std::size_t rows = 0;
        std::size_t columns = 0;
        if (std::sscanf(options.generate.c_str(), "%zux%zu", &rows, &columns) != 2 || rows == 0 || columns == 0)
            throw std::runtime_error("--generate wants ROWSxDIMENSIONS");
        Generated made = generate_embeddings(rows, columns, options.queries);
        data.base = std::move(made.base);
        data.queries = std::move(made.queries);
    } else {
        for (const std::string& path : options.base_files)
            append_rows(data.base, read_vectors(path, 0, options.raw_dimensions));
        data.queries = read_vectors(options.query_file, options.queries, options.raw_dimensions);
    }
    add_conditions(data, options.shares, options.k);
    return data;
}

// Those of the methods wanted, on servers that are there.
std::vector<FilterPlan> choose_plans(const Options& options, std::size_t rows)
{
    std::vector<FilterPlan> plans = filter_plans(rows, options.k);
    for (const std::string& method : options.methods) {
        if (std::ranges::find(plans, method, &FilterPlan::method) == plans.end())
            throw std::runtime_error("unknown method " + method);
    }
    std::erase_if(plans, [&](const FilterPlan& plan) {
        const bool wanted =
            options.methods.empty() || std::ranges::find(options.methods, plan.method) != options.methods.end();
        if (!options.filtering.empty() && plan.server == Server::pgwarp && plan.filtering != options.filtering)
            return true;
        return !wanted || options.connection(plan.server).empty();
    });
    if (plans.empty()) throw std::runtime_error("nothing to measure: no database of these methods is named");
    return plans;
}

void run(const Options& options)
{
    const auto start = Clock::now();
    const FilterData data = load_data(options);
    const std::vector<FilterPlan> plans = choose_plans(options, data.base.rows);
    std::printf("rows, conditions and true answers: %.1f s\n", seconds_since(start));
    FilterBench bench(options, data);
    for (const Server server : {Server::pgwarp, Server::pgvector}) {
        if (std::ranges::count(plans, server, &FilterPlan::server) > 0) bench.load(server);
    }
    std::printf("loaded: %.1f s\n", seconds_since(start));
    std::fflush(stdout);
    for (const FilterPlan& plan : plans) bench.measure(plan);
}

}  // namespace

int main(int argc, char** argv)
try {
    Options options;
    CLI::App app{"Measures searches with conditions through SQL"};
    app.add_option("--name", options.name, "of the data, in results")->capture_default_str();
    app.add_option("--generate", options.generate, "ROWSxDIMENSIONS of generated embeddings")->capture_default_str();
    app.add_option("--base", options.base_files, "Rows instead: files of fvecs, bvecs, u8 or idx");
    app.add_option("--query", options.query_file, "Queries, like the rows");
    app.add_option("--raw-dims", options.raw_dimensions, "Dimensions of u8 files");
    app.add_option("--queries", options.queries)->capture_default_str()->check(CLI::PositiveNumber);
    app.add_option("--k", options.k)->capture_default_str()->check(CLI::PositiveNumber);
    app.add_option("--share", options.shares, "Shares of the rows that pass")->delimiter(',')->capture_default_str();
    app.add_option("--methods", options.methods, "pgwarp's, btree, pgvector-hnsw, pgvector-ivfflat; default: all")
        ->delimiter(',');
    app.add_option("--filtering", options.filtering, "Of pgwarp's: 'filter columns' or 'above the index' alone");
    app.add_option("--recall", options.recall, "at which a sweep ends")->capture_default_str();
    app.add_option("--seconds", options.seconds, "of each measurement")->capture_default_str();
    app.add_option("--clients", options.clients)->capture_default_str()->check(CLI::PositiveNumber);
    app.add_option("--pgwarp", options.pgwarp, "Connection string of the database with pgwarp");
    app.add_option("--pgvector", options.pgvector, "Connection string of the database with pgvector");
    app.add_option("--csv", options.csv_file, "File that results are appended to")->required();
    CLI11_PARSE(app, argc, argv);
    run(options);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "filter_sql_bench: %s\n", error.what());
    return 1;
}
