#include "methods.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace pgwarp::bench
{

namespace
{

// The settings of re-rank that ivfadc is tried with.
std::vector<Settings> refine_variants()
{
    std::vector<Settings> variants;
    for (const char* factor : {"2", "3", "4", "6", "8", "12", "16", "32"})
        variants.push_back({{"pgwarp.refine_factor", factor}});
    return variants;
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
    const Knob ivfadc_probes = {"pgwarp.ivfadc_probes", 1,
                                static_cast<int>(std::max<std::size_t>(64, 4 * square_root))};
    const Knob graph_ef_search = {"pgwarp.graph_ef_search", static_cast<int>(k), 4096};
    return {
        {"seqscan", Server::pgwarp, "", "", {}, {{}}, "", ""},
        {"exact", Server::pgwarp, "exact", "", {}, {{}}, "", ""},
        {"exact-half", Server::pgwarp, "exact", "vectors = half", {}, {{}}, "", ""},
        {"ivfadc", Server::pgwarp, "ivfadc", "", {ivfadc_probes}, refine_variants(), "pgwarp.recall", ""},
        {"ivfadc-half", Server::pgwarp, "ivfadc", "codes = half", {ivfadc_probes}, {{}}, "pgwarp.recall", ""},
        {"ivfadc-int8", Server::pgwarp, "ivfadc", "codes = int8", {ivfadc_probes}, {{}}, "pgwarp.recall", ""},
        {"graph", Server::pgwarp, "graph", "", {graph_ef_search}, {{}}, "pgwarp.recall", ""},
        {"graph-degree64", Server::pgwarp, "graph", "degree = 64", {graph_ef_search}, {{}}, "pgwarp.recall", ""},
        {"graph-half", Server::pgwarp, "graph", "vectors = half", {graph_ef_search}, {{}}, "pgwarp.recall", ""},
        {"graph-bits", Server::pgwarp, "graph", "vectors = bits", {graph_ef_search}, {{}}, "pgwarp.recall", ""},
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
    const std::vector<std::string> usual = {"exact", "ivfadc"};
    auto methods = choose_methods(names.empty() ? usual : names, rows, k);
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
