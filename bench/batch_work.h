// The pieces of work that --batch measures.
#pragma once

#include <functional>

#include "tune.h"

namespace pgwarp::bench
{

// One line of the results: something to do again and again, and its recall.
struct BatchWork {
    std::string kind;  // join, filter, knn_search, search, partitions, knn_graph
    Method method;
    double target;
    Settings settings;
    std::string planner;  // batched, index, forced (an index that the planner had to be told to use), function
    std::size_t queries;  // queries of one round; with clients, the queries from which they choose
    int clients;
    double recall;
    std::function<Measurement()> measure;  // one round
    std::vector<Measurement> rounds;
};

// The measured point of a method: its settings as given in options.settings for `part`, else found by tuning on the
// first options.queries queries. Nothing where no setting reaches the target.
std::optional<Point> batch_point(const Options& options, const Dataset& data, const Method& method,
                                 const std::string& part);

// A table items_asked (id, kind, v) of the first batch_queries queries.
void load_asked(const Options& options, const Dataset& data, Server server);

// A lateral join of all of items_asked with the method's table; its filter is inside of the subquery.
BatchWork join_work(const Options& options, const Dataset& data, const Point& point, const std::string& kind);
// All of items_asked in one call of knn_search, and the k-NN graph of all rows.
BatchWork search_work(const Options& options, const Dataset& data, const Point& point);
BatchWork graph_work(const Options& options, const Dataset& data, const Point& point);
// Prepared single searches.
BatchWork client_work(const Options& options, const Dataset& data, const Point& point, int clients);
// The same by one client over a partitioned table.
std::vector<BatchWork> partition_works(const Options& options, const Dataset& data);

}  // namespace pgwarp::bench
