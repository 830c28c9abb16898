// Work of one statement: joins, knn_search and knn_graph.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "batch_work.h"
#include "builds.h"

namespace pgwarp::bench
{

namespace
{

constexpr char asked_table[] = "items_asked";
constexpr std::size_t graph_samples = 100;  // blocks whose rows' edges are compared with the true ones

std::shared_ptr<Database> open_with(const Options& options, const Point& point)
{
    auto database = std::make_shared<Database>(connection_of(options, point.method->server));
    for (const auto& [name, value] : point.settings) database->run("SET " + name + " = " + value);
    return database;
}

// How the plan of a join searches: "batched", "index", or "" without the index.
std::string plan_of(Database& database, const Method& method, const std::string& sql)
{
    std::string found;
    for (const std::string& line : database.column("EXPLAIN (COSTS OFF) " + sql)) {
        if (line.find("Custom Scan (Knn") != std::string::npos) return "batched";
        if (line.find("Index Scan using " + method.index()) != std::string::npos) found = "index";
    }
    return found;
}

// The same, with other plans forbidden where that is needed.
std::string make_plan(Database& database, const Method& method, const std::string& sql)
{
    std::string plan = plan_of(database, method, sql);
    if (!plan.empty()) return plan;
    database.run("SET enable_seqscan = off");
    if (plan_of(database, method, sql).empty())
        throw std::runtime_error("the planner does not use the index of " + method.name);
    return "forced";
}

Measurement time_statement(Database& database, const std::string& sql, std::size_t queries)
{
    const auto start = std::chrono::steady_clock::now();
    database.run(sql);
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    return {static_cast<double>(queries) / us * 1e6, us, 0, 0};
}

std::string join_sql(const Options& options, const Dataset& data, const Method& method, const std::string& columns,
                     std::size_t outer_rows)
{
    const std::string where = method.filter.empty() ? "" : " WHERE " + method.filter;
    return "SELECT " + columns + " FROM (SELECT * FROM " + asked_table + " WHERE id < " + std::to_string(outer_rows) +
           ") q CROSS JOIN LATERAL (SELECT i.id FROM " + method.table() + " i" + where + " ORDER BY i.v " +
           operator_of(data.metric) + " q.v LIMIT " + std::to_string(options.k) + ") n";
}

// Mean recall of (query, id) over the first queries.
double recall_of(const Options& options, const Dataset& data, const GroundTruth& truth,
                 const std::vector<std::pair<int, int>>& pairs, std::size_t queries)
{
    std::vector<std::vector<std::int32_t>> ids(queries);
    for (const auto& [query, id] : pairs) {
        if (query >= 0 && static_cast<std::size_t>(query) < queries) ids[static_cast<std::size_t>(query)].push_back(id);
    }
    double sum = 0;
    for (std::size_t q = 0; q < queries; ++q) {
        if (ids[q].size() > options.k) throw std::runtime_error("a query has more than k answers");
        sum += truth.recall(data.base, data.queries.row(q), q, data.metric, ids[q], options.k);
    }
    return sum / static_cast<double>(queries);
}

std::size_t asked(const Options& options, const Dataset& data)
{
    return std::min(options.batch_queries, data.queries.rows);
}

std::string graph_call(const Options& options, const Method& method, const std::string& range)
{
    return "knn_graph('" + method.index() + "', " + std::to_string(options.k) + range + ")";
}

// Recall of the graph over the rows of some blocks, spread evenly: of each row's true k nearest others.
double graph_recall(const Options& options, const Dataset& data, const Method& method, Database& database)
{
    const std::string table = method.table();
    const std::size_t blocks =
        std::stoull(database.value("SELECT pg_relation_size('" + table + "') / current_setting('block_size')::int"));
    std::vector<std::pair<int, int>> edges;
    for (std::size_t i = 0; i < std::min(graph_samples, blocks); ++i) {
        const std::string block = std::to_string(i * blocks / std::min(graph_samples, blocks));
        const std::string call = graph_call(options, method, ", " + block + ", " + block);
        const auto some = database.pairs("SELECT a.id, b.id FROM " + call + " g JOIN " + table +
                                         " a ON a.ctid = g.tid JOIN " + table + " b ON b.ctid = g.neighbor");
        edges.insert(edges.end(), some.begin(), some.end());
    }
    std::map<int, std::vector<std::int32_t>> neighbours;
    for (const auto& [row, neighbour] : edges) neighbours[row].push_back(neighbour);
    Matrix<float> rows = {0, data.base.columns, {}};
    for (const auto& [row, unused] : neighbours) {
        const auto values = data.base.row(static_cast<std::size_t>(row));
        append_rows(rows, {1, data.base.columns, {values.begin(), values.end()}});
    }
    // The row itself is nearest and counts on both sides.
    const GroundTruth truth = GroundTruth::compute(data.base, rows, data.metric, options.k + 1, options.cache);
    double sum = 0;
    std::size_t q = 0;
    for (auto& [row, ids] : neighbours) {
        ids.push_back(row);
        const double both = truth.recall(data.base, rows.row(q), q, data.metric, ids, options.k + 1);
        sum += (both * static_cast<double>(options.k + 1) - 1) / static_cast<double>(options.k);
        ++q;
    }
    return sum / static_cast<double>(q);
}

BatchWork work_of(const Point& point, const std::string& kind, const std::string& planner, std::size_t queries,
                  double recall)
{
    return {kind, *point.method, point.target, point.settings, planner, queries, 1, recall, {}, {}};
}

}  // namespace

void load_asked(const Options& options, const Dataset& data, Server server)
{
    Database database(connection_of(options, server));
    const std::string table = asked_table;
    database.run("DROP TABLE IF EXISTS " + table);
    database.run("CREATE TABLE " + table + " (id int, kind int, v vector(" + std::to_string(data.base.columns) + "))");
    database.copy_rows(table, data.queries, 0, asked(options, data));
    database.run("VACUUM (FREEZE, ANALYZE) " + table);
}

BatchWork join_work(const Options& options, const Dataset& data, const Point& point, const std::string& kind)
{
    const Method& method = *point.method;
    const std::size_t queries = asked(options, data);
    const GroundTruth& truth = method.filter.empty() ? data.truth : data.filtered_truth;
    const auto database = open_with(options, point);
    const std::string sql = join_sql(options, data, method, "count(n.id)", queries);
    const std::string planner = make_plan(*database, method, sql);
    // Recall of the whole join where that is known and quick.
    const bool all = method.server == Server::pgwarp && method.filter.empty();
    const std::size_t judged = all ? queries : std::min(options.queries, queries);
    const std::size_t outer_rows = method.server == Server::pgwarp ? queries : judged;
    const auto pairs = database->pairs(join_sql(options, data, method, "q.id, n.id", outer_rows));
    BatchWork work = work_of(point, kind, planner, queries, recall_of(options, data, truth, pairs, judged));
    work.measure = [database, sql, queries] { return time_statement(*database, sql, queries); };
    return work;
}

BatchWork search_work(const Options& options, const Dataset& data, const Point& point)
{
    const Method& method = *point.method;
    const std::size_t queries = asked(options, data);
    const auto database = open_with(options, point);
    const std::string call = "knn_search('" + method.index() + "', 'SELECT v FROM " + asked_table + " ORDER BY id', " +
                             std::to_string(options.k) + ")";
    const auto pairs =
        database->pairs("SELECT s.query - 1, i.id FROM " + call + " s JOIN " + method.table() + " i ON i.ctid = s.tid");
    BatchWork work =
        work_of(point, "knn_search", "function", queries, recall_of(options, data, data.truth, pairs, queries));
    const std::string sql = "SELECT count(s.tid) FROM " + call + " s";
    work.measure = [database, sql, queries] { return time_statement(*database, sql, queries); };
    return work;
}

BatchWork graph_work(const Options& options, const Dataset& data, const Point& point)
{
    const Method& method = *point.method;
    const auto database = open_with(options, point);
    const double recall = graph_recall(options, data, method, *database);
    BatchWork work = work_of(point, "knn_graph", "function", data.base.rows, recall);
    // In a target list the edges flow, in FROM they are stored first.
    const std::string sql =
        "SELECT count(edge) FROM (SELECT " + graph_call(options, method, "") + " AS edge OFFSET 0) s";
    const std::size_t rows = data.base.rows;
    work.measure = [database, sql, rows] { return time_statement(*database, sql, rows); };
    return work;
}

BatchWork client_work(const Options& options, const Dataset& data, const Point& point, int clients)
{
    BatchWork work = work_of(point, "search", point.forced ? "forced" : "index", data.queries.rows, point.recall);
    work.clients = clients;
    const Method method = *point.method;
    const Settings settings = point.settings;
    work.measure = [&options, &data, method, settings, clients] {
        return measure_clients(options, data, method, settings, clients);
    };
    return work;
}

}  // namespace pgwarp::bench
