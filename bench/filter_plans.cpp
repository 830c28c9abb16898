#include "filter_plans.h"

#include <algorithm>

namespace pgwarp::bench
{

namespace
{

// Asked of the calibration. The last ones are for conditions at which it promises too much.
constexpr const char* recalls[] = {"0.9", "0.95", "0.99", "0.995", "0.999"};

// A plan that sorts is measured as a plan of its own.
const Settings by_index = {{"enable_seqscan", "off"}, {"enable_sort", "off"}};

void add_pgwarp(const Method& method, std::vector<FilterPlan>& plans)
{
    FilterPlan plan{method.name, "", Server::pgwarp, {}, by_index, {}};
    if (method.recall_setting.empty()) {
        plan.sweep = {{}};
    } else {
        for (const char* recall : recalls) plan.sweep.push_back({{method.recall_setting, recall}});
    }
    const std::string options = method.options.empty() ? "" : " WITH (" + method.options + ")";
    const auto create = [&](const char* columns) {
        return "CREATE INDEX items_v ON items USING " + method.access_method + " (" + columns + ")" + options;
    };
    plan.filtering = "above the index";
    plan.create = {create("v")};
    plans.push_back(plan);
    plan.filtering = "filter columns";
    plan.create = {create("v, number, region, price, day")};
    plans.push_back(plan);
}

// PostgreSQL's own: rows that pass by a B-tree or a sequential scan, sorted. Its plan depends on the values.
FilterPlan sorted_plan()
{
    return {"btree",
            "sort",
            Server::pgvector,
            {"CREATE INDEX items_number ON items (number)", "CREATE INDEX items_region ON items (region)"},
            {{"plan_cache_mode", "force_custom_plan"}},
            {{}}};
}

void add_hnsw(std::size_t rows, std::size_t k, std::vector<FilterPlan>& plans)
{
    for (const char* order : {"relaxed_order", "strict_order"}) {
        FilterPlan plan{"pgvector-hnsw",  order,
                        Server::pgvector, {"CREATE INDEX items_v ON items USING hnsw (v vector_l2_ops)"},
                        by_index,         {}};
        plan.always.insert(plan.always.end(), {{"hnsw.iterative_scan", order},
                                               {"hnsw.max_scan_tuples", std::to_string(rows)},
                                               {"hnsw.scan_mem_multiplier", "32"}});
        for (const std::size_t ef : {2 * k, 4 * k, 8 * k, 16 * k, 40 * k, 100 * k})
            plan.sweep.push_back({{"hnsw.ef_search", std::to_string(ef)}});
        plans.push_back(plan);
    }
}

FilterPlan ivfflat_plan(std::size_t rows)
{
    // As many as pgvector's documentation says.
    const std::size_t lists = std::max<std::size_t>(10, rows / 1000);
    FilterPlan plan{
        "pgvector-ivfflat",
        "relaxed_order",
        Server::pgvector,
        {"CREATE INDEX items_v ON items USING ivfflat (v vector_l2_ops) WITH (lists = " + std::to_string(lists) + ")"},
        by_index,
        {}};
    plan.always.emplace_back("ivfflat.iterative_scan", "relaxed_order");
    for (std::size_t probes = 4; probes < lists; probes *= 2)
        plan.sweep.push_back({{"ivfflat.probes", std::to_string(probes)}});
    plan.sweep.push_back({{"ivfflat.probes", std::to_string(lists)}});
    return plan;
}

}  // namespace

std::vector<FilterPlan> filter_plans(std::size_t rows, std::size_t k)
{
    std::vector<FilterPlan> plans;
    for (const Method& method : choose_pgwarp_indexes({}, rows, k)) add_pgwarp(method, plans);
    plans.push_back(sorted_plan());
    add_hnsw(rows, k, plans);
    plans.push_back(ivfflat_plan(rows));
    return plans;
}

}  // namespace pgwarp::bench
