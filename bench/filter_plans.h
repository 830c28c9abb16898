// Ways to answer a query with a condition: an index, and settings to try.
#pragma once

#include <string>
#include <vector>

#include "methods.h"

namespace pgwarp::bench
{

struct FilterPlan {
    std::string method;
    std::string filtering;  // how the condition is met
    Server server = Server::pgwarp;
    std::vector<std::string> create;  // indexes, all dropped afterwards
    Settings always;
    std::vector<Settings> sweep;  // from the fastest to the most thorough
};

// Of pgwarp's methods, with the filter above the index and with filter columns; then PostgreSQL's own plan and
// pgvector's indexes.
std::vector<FilterPlan> filter_plans(std::size_t rows, std::size_t k);

}  // namespace pgwarp::bench
