// The measured methods: ways to find the nearest rows, in pgwarp's database or in pgvector's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ground_truth.h"

namespace pgwarp::bench
{

using Settings = std::vector<std::pair<std::string, std::string>>;

enum class Server { pgwarp, pgvector };

struct Knob {
    std::string setting;
    int smallest;
    int largest;
};

struct Method {
    std::string name;
    Server server;
    std::string access_method;  // "" = sequential scan
    std::string options;        // of CREATE INDEX
    // Reaching a recall: the first knob is searched for its smallest value, for each of these settings.
    std::vector<Knob> knob;
    std::vector<Settings> variants;
    // A setting that takes the target itself.
    std::string recall_setting;
    std::string filter;  // condition on the rows that are searched; "" = none

    std::string table() const;
    std::string index() const { return table() + "_v"; }
    bool indexed() const { return !access_method.empty(); }
};

// The methods named, or all.
std::vector<Method> choose_methods(const std::vector<std::string>& names, std::size_t rows, std::size_t k);
// The same of pgwarp's indexes; one of each access method where none is named. Throws for a method that is none.
std::vector<Method> choose_pgwarp_indexes(const std::vector<std::string>& names, std::size_t rows, std::size_t k);

const char* operator_of(Metric metric);
std::string create_index_sql(const Method& method, Metric metric);
std::string search_sql(const Method& method, Metric metric, std::size_t k);
std::string describe(const Settings& settings);

}  // namespace pgwarp::bench
