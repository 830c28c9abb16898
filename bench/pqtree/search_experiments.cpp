// Table 1, searches beside other methods at equal recall, and the recall of calibrated searches.
#include <algorithm>
#include <cmath>

#include "experiments.h"
#include "protocol/calibration.h"

namespace pgwarp::bench::pqtree
{

namespace
{

constexpr std::uint32_t k = 10;
constexpr double targets[] = {0.90, 0.95, 0.98};  // of recall
constexpr std::size_t column_of_k = 1;            // of a calibration
constexpr float least_of_interest = 0.6F;         // recall that a curve begins at
constexpr std::size_t most_points = 12;           // of a curve
constexpr double least_gain = 0.001;              // of recall, with which a curve goes on
constexpr double most_batch_us = 2e6;             // a curve ends where a batch takes longer
constexpr std::int64_t most_scanned = 50000;      // candidates that a search may take without reaching its recall
constexpr std::size_t most_linked = 200000;       // rows of a graph that a CPU builds

std::string options_of(const Index& index)
{
    const std::size_t comma = index.choice.text.find(',');
    return comma == std::string::npos ? "default" : index.choice.text.substr(comma + 1);
}

// The setting that is the method's effort.
const char* effort_name(const MethodDescription& method)
{
    for (const SettingDescription& setting : method.settings)
        if (setting.is_effort) return setting.parameter;
    return nullptr;
}

// Efforts along the calibration, from a recall of interest on, or from three quarters of what it reaches; without that
// of all rows.
std::vector<std::int64_t> efforts_of(const Calibration& calibration)
{
    std::vector<CalibrationPoint> points(calibration.points, calibration.points + calibration.count);
    if (points.size() > 1 && points.back().effort > most_scanned) points.pop_back();
    float highest = 0;
    for (const CalibrationPoint& point : points) highest = std::max(highest, point.recall[column_of_k]);
    std::vector<std::int64_t> all;
    for (const CalibrationPoint& point : points)
        if (point.recall[column_of_k] >= std::min(least_of_interest, 0.75F * highest)) all.push_back(point.effort);
    if (all.empty()) return {0};
    std::vector<std::int64_t> some;
    const std::size_t step = all.size() / most_points + 1;
    for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
    return some;
}

// Bytes of ivfadc's codes that, with what a row takes besides, make about as many bytes a row. A GPU packs them by 16.
std::size_t subquantizers_for(double bytes, std::size_t dimensions)
{
    constexpr double besides = 16;
    constexpr double pack = 16;
    const double packs = std::max(1.0, std::round((bytes - besides) / pack));
    return std::min(dimensions, static_cast<std::size_t>(pack * packs));
}

// Writes a curve along the efforts, then what the calibration chooses for recalls asked for.
void write_searches(Table& table, const Plan& plan, const DataSet& data, const Index& index, ThreadPool& pool)
{
    struct Point {
        double recall;
        double batch_us;
    };
    const auto write = [&](double asked, std::int64_t effort) {
        Search one{.k = index.width(k), .effort = effort, .rounds = plan.rounds};
        const Found all = search(index, data, one, plan.searching(pool));
        one.batch = 1;
        one.rounds = 1;
        const Found single = search(index, data, one, plan.searching(pool));
        const double recall = recall_of(all, data, k);
        table.row(plan.device.name(), index.choice.method->name, data.name, data.rows, options_of(index), asked,
                  std::to_string(effort), data.asked(), recall, all.us, single.us, index.bytes_a_row(), index.build_s);
        return Point{recall, all.us * static_cast<double>(data.asked())};
    };
    std::vector<std::pair<std::int64_t, double>> curve;
    for (const std::int64_t effort : efforts_of(index.calibration)) {
        const Point point = write(0, effort);
        const double before = curve.empty() ? 0 : curve.back().second;
        curve.emplace_back(effort, point.recall);
        if (point.recall < before + least_gain || point.batch_us > most_batch_us) break;
    }
    // The least effort that reaches a recall, within a sixteenth of a step of the curve.
    for (const double recall : targets) {
        const auto reached = std::ranges::find_if(curve, [&](const auto& point) { return point.second >= recall; });
        if (reached == curve.begin() || reached == curve.end()) continue;
        std::int64_t below = (reached - 1)->first;
        std::int64_t enough = reached->first;
        for (int step = 0; step < 4 && enough - below > 1; ++step) {
            const std::int64_t middle = below + (enough - below) / 2;
            const Found found =
                search(index, data, {.k = index.width(k), .effort = middle, .rounds = 0}, plan.searching(pool));
            (recall_of(found, data, k) >= recall ? enough : below) = middle;
        }
        if (enough != reached->first) write(0, enough);
    }
    for (const double recall : targets) {
        const EffortChoice choice = choose_effort(index.calibration, k, recall);
        if (choice.reached) write(recall, choice.effort);
    }
}

}  // namespace

void run_methods(const Plan& plan, ThreadPool& pool)
{
    const auto data = plan.load("sift", Metric::l2, plan.rows, pool);
    if (!data) return;
    const std::string lines = ",line_parts=" + std::to_string(std::min<std::size_t>(32, data->dimensions));
    struct Case {
        std::string choice;
        std::vector<std::int64_t> efforts;
        std::uint32_t results;
    };
    // The paper's tree of its CPU, then the product's.
    std::vector<Case> cases = {
        {"pqtree,parts=2,k1=8,k2=4,refine=0" + lines, {20000}, 100},
        {"pqtree,parts=2,k1=8,k2=4,refine=2" + lines, {20000}, k},
        {"pqtree,k1=64,k2=8,refine=0", {2048, 3200, 3520, 3600, 4096, 8192}, 100},
        {"pqtree,k1=64,k2=8,refine=0" + lines, {4096, 8192}, 100},
        {"pqtree,k1=64,k2=8", {4096, 7936, 8192, 12288}, k},
        {"ivfadc,refine=0", {8, 16, 32, 64}, 100},
        {"ivfadc", {8, 16, 32, 64}, k},
    };
    if (plan.on_gpu()) {
        // The paper's tree of its GPU: four parts of that many leaves take a CPU minutes.
        cases.insert(cases.begin() + 2, {"pqtree,parts=4,k1=64,k2=8,refine=0" + lines, {4096}, 100});
        // Smaller trees, whose steps before the candidates are shorter: one query alone waits for them.
        cases.push_back({"pqtree,k1=48,k2=8", {8192, 9216, 10240, 12288}, k});
        cases.push_back({"pqtree,k1=32,k2=8", {8192, 10240, 12288, 16384}, k});
        cases.push_back({"pqtree,k1=32,k2=16", {6656, 8192, 9216, 10240}, k});
        cases.push_back({"exact", {0}, 100});
    }
    Table table(plan.output, "table1",
                "device method data rows options effort results R@1 R@10 R@100 recall@10 us one_query_us bytes_a_row "
                "build_s");
    for (const Case& one : cases) {
        const Index index = build_index(one.choice, *data, plan.device, pool);
        const std::uint32_t results = one.results == k ? index.width(k) : one.results;
        for (const std::int64_t effort : one.efforts) {
            Search asked{.k = results, .rounds = plan.rounds};
            if (const char* name = effort_name(*index.choice.method)) asked.settings.set(name, effort);
            const Found all = search(index, *data, asked, plan.searching(pool));
            asked.batch = 1;
            asked.rounds = 1;
            const Found single = search(index, *data, asked, plan.searching(pool));
            table.row(plan.device.name(), index.choice.method->name, data->name, data->rows, options_of(index),
                      std::to_string(effort), results, nearest_within(all, *data, 1), nearest_within(all, *data, 10),
                      nearest_within(all, *data, 100), recall_of(all, *data, k), all.us, single.us, index.bytes_a_row(),
                      index.build_s);
        }
    }
}

void run_searches(const Plan& plan, ThreadPool& pool)
{
    const auto data = plan.load("sift", Metric::l2, plan.on_gpu() ? plan.rows : 100000, pool);
    if (!data) return;
    std::vector<std::string> choices = {"pqtree", "pqtree,refine=0", "ivfadc", "ivfadc,refine=0", "graph"};
    if (plan.on_gpu()) choices.insert(choices.begin() + 1, "pqtree,k1=64,k2=8");
    Table table(plan.output, "searches",
                "device method data rows options asked effort queries recall us one_query_us bytes_a_row build_s");
    for (const std::string& choice : choices) {
        if (!plan.on_gpu() && choice == "graph" && data->rows > most_linked) continue;
        const Index index = build_index(choice, *data, plan.device, pool);
        write_searches(table, plan, *data, index, pool);
    }
}

void run_calibrated(const Plan& plan, ThreadPool& pool)
{
    struct Case {
        const char* data;
        Metric metric;
        const char* name;
    };
    constexpr Case cases[] = {{"sift", Metric::l2, "l2"},
                              {"sift", Metric::inner_product, "inner product"},
                              {"sift", Metric::cosine, "cosine"},
                              {"fashion", Metric::l2, "l2"},
                              {"fashion", Metric::cosine, "cosine"},
                              {"clustered", Metric::l2, "l2"}};
    Table table(plan.output, "calibrated", "device metric data options rows k asked promised recall effort us");
    for (const Case& one : cases) {
        const std::size_t most = plan.on_gpu() ? std::max<std::size_t>(plan.rows, 1000000) : 100000;
        const auto data = plan.load(one.data, one.metric, most, pool);
        if (!data) continue;
        for (const char* choice : {"pqtree", "pqtree,refine=0"}) {
            const Index index = build_index(choice, *data, plan.device, pool);
            for (const std::uint32_t wanted : {1U, 10U, 100U}) {
                for (const double recall : {0.90, 0.95}) {
                    const EffortChoice effort = choose_effort(index.calibration, wanted, recall);
                    // Searches of that many candidates take long; without the recall, too long.
                    const bool slow = effort.effort >= most_scanned;
                    if (slow && !effort.reached) continue;
                    const Search asked{.k = index.width(wanted), .effort = effort.effort, .rounds = slow ? 0U : 1U};
                    const Found found = search(index, *data, asked, plan.searching(pool));
                    table.row(plan.device.name(), one.name, data->name, options_of(index), data->rows, wanted, recall,
                              double{effort.attained}, recall_of(found, *data, wanted), std::to_string(effort.effort),
                              found.us);
                }
            }
        }
    }
}

namespace
{

// Builds, and searches at recalls that both reach: of pqtree, and of ivfadc with as many bytes a row.
class Builds
{
public:
    Builds(const Plan& plan, ThreadPool& pool)
        : plan_(plan),
          pool_(pool),
          builds_(plan.output, "builds", "device method data rows options build_s load_s bytes_a_row phases"),
          searches_(plan.output, "scale",
                    "device method data rows options asked effort queries recall us one_query_us bytes_a_row build_s")
    {
    }
    // Returns the bytes of a row.
    double measure(const DataSet& data, const std::string& choice)
    {
        const Index index = build_index(choice, data, plan_.device, pool_);
        builds_.row(plan_.device.name(), index.choice.method->name, data.name, data.rows, options_of(index),
                    index.build_s, index.load_s, index.bytes_a_row(), index.phases);
        if (!plan_.builds_alone) write_searches(searches_, plan_, data, index, pool_);
        return index.bytes_a_row();
    }

private:
    const Plan& plan_;
    ThreadPool& pool_;
    Table builds_;
    Table searches_;
};

}  // namespace

void run_builds(const Plan& plan, ThreadPool& pool)
{
    Builds builds(plan, pool);
    for (const std::size_t rows : plan.generated) {
        const auto data = plan.load("generated", Metric::l2, rows, pool);
        // Line codes of 3 and of 8 dimensions a part.
        for (const std::string& lines :
             {",line_parts=" + std::to_string(data->dimensions / 3 / 2 * 2), std::string()}) {
            const double bytes = builds.measure(*data, "pqtree,refine=0" + lines);
            builds.measure(
                *data, "ivfadc,refine=0,subquantizers=" + std::to_string(subquantizers_for(bytes, data->dimensions)));
        }
    }
}

void run_halves(const Plan& plan, ThreadPool& pool)
{
    Builds builds(plan, pool);
    for (const std::size_t rows : plan.generated) {
        std::unique_ptr<DataSet> data;
        for (const char* choice : {"pqtree", "ivfadc"}) {
            // A build gives the floats of shared rows up.
            if (!data || data->shared) data = plan.load("generated", Metric::l2, rows, pool);
            builds.measure(*data, choice);
        }
    }
}

}  // namespace pgwarp::bench::pqtree
