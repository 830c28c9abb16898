// One search over a table of many partitions.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "batch_work.h"

namespace pgwarp::bench
{

namespace
{

constexpr std::size_t judged_queries = 100;  // a search over many partitions is slow where it is not batched

// The table's name tells its shape, so that --reuse takes no other.
Method on_partitions(const Options& options, Method method)
{
    method.name = "parts-" + std::to_string(options.partitions) + "x" + std::to_string(options.partition_rows) + "-" +
                  method.name;
    return method;
}

// The rows that the partitions hold, with the truth about them.
Dataset partition_data(const Options& options, const Dataset& data)
{
    const std::size_t rows = options.partitions * options.partition_rows;
    if (rows > data.base.rows)
        throw std::runtime_error("partitions want " + std::to_string(rows) + " rows, there are " +
                                 std::to_string(data.base.rows));
    const std::size_t queries = std::min({options.queries, data.queries.rows, judged_queries});
    const std::size_t columns = data.base.columns;
    const auto prefix = [&](const Matrix<float>& matrix, std::size_t count) {
        const auto end = matrix.values.begin() + static_cast<std::ptrdiff_t>(count * columns);
        return Matrix<float>{count, columns, {matrix.values.begin(), end}};
    };
    Dataset out;
    out.base = prefix(data.base, rows);
    out.queries = prefix(data.queries, queries);
    out.metric = data.metric;
    out.truth = GroundTruth::compute(out.base, out.queries, out.metric, options.k, options.cache);
    return out;
}

bool has_index(Database& database, const Method& method)
{
    return database.value("SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('" + method.index() +
                          "') AND indisvalid") == "1";
}

void load_partitions(const Options& options, const Dataset& data, const Method& method)
{
    Database database(connection_of(options, method.server));
    const std::string table = method.table();
    if (options.reuse && has_index(database, method)) return;
    const auto start = std::chrono::steady_clock::now();
    database.run("DROP TABLE IF EXISTS " + table);
    database.run("CREATE TABLE " + table + " (id int, kind int, v vector(" + std::to_string(data.base.columns) +
                 ")) PARTITION BY RANGE (id)");
    for (std::size_t i = 0; i < options.partitions; ++i) {
        const std::size_t first = i * options.partition_rows;
        database.run("CREATE TABLE " + table + "_" + std::to_string(i) + " PARTITION OF " + table +
                     " FOR VALUES FROM (" + std::to_string(first) + ") TO (" +
                     std::to_string(first + options.partition_rows) + ")");
    }
    database.copy_rows(table, data.base, 0, data.base.rows);
    database.run(create_index_sql(method, data.metric));
    database.run("VACUUM (FREEZE, ANALYZE) " + table);
    std::printf("  %-22s %8.2f s\n", method.name.c_str(),
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::fflush(stdout);
}

}  // namespace

std::vector<BatchWork> partition_works(const Options& options, const Dataset& data)
{
    const auto few = std::make_shared<Dataset>(partition_data(options, data));
    Options own = options;
    own.queries = few->queries.rows;
    const auto own_options = std::make_shared<Options>(own);
    std::vector<BatchWork> works;
    for (const Method& plain : choose_methods(options.partition_methods, options.partition_rows, options.k)) {
        if (connection_of(options, plain.server).empty()) continue;
        const Method method = on_partitions(options, plain);
        load_partitions(options, *few, method);
        const std::optional<Point> point = batch_point(*own_options, *few, method, "partitions");
        if (!point) continue;
        BatchWork work = client_work(*own_options, *few, *point, 1);
        work.kind = "partitions";
        const Settings settings = point->settings;
        work.measure = [own_options, few, method, settings] {
            return measure_clients(*own_options, *few, method, settings, 1);
        };
        works.push_back(std::move(work));
    }
    return works;
}

}  // namespace pgwarp::bench
