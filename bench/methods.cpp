#include "methods.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "described.h"

namespace pgwarp::bench
{

namespace
{

// A setting beside the effort that a method of pgwarp is tried with, if it has one, or none.
std::vector<Settings> variants_of(const MethodDescription& method)
{
    for (const SettingDescription& setting : method.settings) {
        if (!setting.overrides_calibration || setting.is_effort) continue;
        std::vector<Settings> variants;
        for (const char* value : {"2", "3", "4", "6", "8", "12", "16", "32"})
            variants.push_back({{std::string("pgwarp.") + setting.value.name, value}});
        return variants;
    }
    return {{}};
}

// The usual form of a method of pgwarp, and its others.
void add_forms(const MethodDescription& description, std::size_t rows, std::vector<Method>& methods)
{
    const auto square_root = static_cast<std::size_t>(std::sqrt(static_cast<double>(rows)));
    Method method = {description.name, Server::pgwarp, description.name, "", {}, variants_of(description), "", ""};
    for (const SettingDescription& setting : description.settings) {
        if (!setting.is_effort) continue;
        const std::size_t most = std::max<std::size_t>(4096, 4 * square_root);
        method.knob = {{std::string("pgwarp.") + setting.value.name, 1, static_cast<int>(most)}};
    }
    if (!is_complete(description)) method.recall_setting = "pgwarp.recall";
    methods.push_back(method);
    method.variants = {{}};
    for (const MethodForm& form : description.forms) {
        method.name = std::string(description.name) + "-" + form.suffix;
        method.options = form.options;
        methods.push_back(method);
    }
}

std::string ivfflat_options(std::size_t lists)
{
    return "lists = " + std::to_string(lists);
}

std::vector<Method> all_methods(std::size_t rows, std::size_t k)
{
    const auto square_root = static_cast<std::size_t>(std::sqrt(static_cast<double>(rows)));
    // pgvector's documentation: rows / 1000 up to a million rows, then the square root. The square root is tried as
    // well.
    const std::size_t recommended = std::max<std::size_t>(1, rows <= 1000000 ? rows / 1000 : square_root);
    const Knob ef_search = {"hnsw.ef_search", static_cast<int>(k), 1000};
    const auto probes = [](std::size_t lists) { return Knob{"ivfflat.probes", 1, static_cast<int>(lists)}; };
    std::vector<Method> methods = {{"seqscan", Server::pgwarp, "", "", {}, {{}}, "", ""}};
    for (const MethodDescription* description : vector_methods()) add_forms(*description, rows, methods);
    const std::vector<Method> others = {
        {"pgvector-seqscan", Server::pgvector, "", "", {}, {{}}, "", ""},
        {"pgvector-hnsw", Server::pgvector, "hnsw", "m = 16, ef_construction = 64", {ef_search}, {{}}, "", ""},
        {"pgvector-ivfflat",
         Server::pgvector,
         "ivfflat",
         ivfflat_options(recommended),
         {probes(recommended)},
         {{}},
         "",
         ""},
        {"pgvector-ivfflat-sqrt",
         Server::pgvector,
         "ivfflat",
         ivfflat_options(square_root),
         {probes(square_root)},
         {{}},
         "",
         ""},
    };
    methods.insert(methods.end(), others.begin(), others.end());
    return methods;
}

}  // namespace

std::string Method::table() const
{
    std::string out = "items_" + name;
    std::ranges::replace(out, '-', '_');
    return out;
}

std::vector<Method> choose_methods(const std::vector<std::string>& names, std::size_t rows, std::size_t k)
{
    const std::vector<Method> all = all_methods(rows, k);
    if (names.empty()) return all;
    std::vector<Method> chosen;
    for (const std::string& name : names) {
        const auto found = std::ranges::find(all, name, &Method::name);
        if (found == all.end()) throw std::runtime_error("unknown method " + name);
        chosen.push_back(*found);
    }
    return chosen;
}

std::vector<Method> choose_pgwarp_indexes(const std::vector<std::string>& names, std::size_t rows, std::size_t k)
{
    std::vector<std::string> all;
    for (const MethodDescription* description : vector_methods()) all.push_back(description->name);
    auto methods = choose_methods(names.empty() ? all : names, rows, k);
    for (const Method& method : methods) {
        if (method.server != Server::pgwarp || !method.indexed())
            throw std::runtime_error(method.name + " is no index of pgwarp");
    }
    return methods;
}

const char* operator_of(Metric metric)
{
    switch (metric) {
        case Metric::inner_product:
            return "<#>";
        case Metric::cosine:
            return "<=>";
        default:
            return "<->";
    }
}

std::string create_index_sql(const Method& method, Metric metric)
{
    const char* operator_class = metric == Metric::l2       ? "vector_l2_ops"
                                 : metric == Metric::cosine ? "vector_cosine_ops"
                                                            : "vector_ip_ops";
    std::string sql = "CREATE INDEX " + method.index() + " ON " + method.table() + " USING " + method.access_method +
                      " (v " + operator_class + ")";
    if (!method.options.empty()) sql += " WITH (" + method.options + ")";
    return sql;
}

std::string search_sql(const Method& method, Metric metric, std::size_t k)
{
    const std::string where = method.filter.empty() ? "" : " WHERE " + method.filter;
    return "SELECT id FROM " + method.table() + where + " ORDER BY v " + operator_of(metric) + " $1 LIMIT " +
           std::to_string(k);
}

std::string describe(const Settings& settings)
{
    std::string out;
    for (const auto& [name, value] : settings) out += (out.empty() ? "" : " ") + name + "=" + value;
    return out;
}

}  // namespace pgwarp::bench
