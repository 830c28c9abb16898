// The experiments of the paper of pqtree: see bench/pqtree/run.
//
//   pqtree_bench --out FOLDER [--data FOLDER | --quick] [--experiments LIST] [--device cpu|cuda] [--rows N]
//     [--queries N] [--generated N,N] [--rounds N] [--builds-alone 1] [--threads N] [--machine TEXT] [--commit TEXT]
#include <cstdio>

#include "../gpu/harness.h"
#include "experiments.h"

namespace pgwarp::bench::pqtree
{

namespace
{

void run(const Arguments& arguments)
{
    ThreadPool pool(arguments.number("threads", 0));
    const std::string folder = arguments.text("data", "");
    const bool quick = arguments.given.contains("quick");
    if (quick != folder.empty()) throw std::invalid_argument("give either --data FOLDER or --quick");
    const bool on_gpu = arguments.text("device", "cpu") == "cuda";
    const std::unique_ptr<Device> device = on_gpu ? open_gpu() : std::make_unique<Device>();
    if (!device) throw std::runtime_error("this program was built without CUDA");
    Plan plan{.output = {arguments.text("out", "."), arguments.text("machine", "-"), arguments.text("commit", "-")},
              .device = *device,
              .folder = folder};
    plan.rows = arguments.number("rows", quick ? 2000 : 0);
    plan.queries = arguments.number("queries", quick ? 100 : on_gpu ? 10000 : 1000);
    plan.generated = arguments.numbers("generated", quick ? "4000" : on_gpu ? "1000000,100000000" : "100000,1000000");
    plan.builds_alone = arguments.number("builds-alone", 0) != 0;
    plan.rounds = arguments.number("rounds", on_gpu ? 5 : 1);
    constexpr std::pair<const char*, void (*)(const Plan&, ThreadPool&)> experiments[] = {
        {"order", run_order},           {"lines", run_lines},   {"methods", run_methods}, {"searches", run_searches},
        {"calibrated", run_calibrated}, {"builds", run_builds}, {"halves", run_halves},   {"proposals", run_proposals}};
    // The order of bins, and the errors of lines, are the same on every device.
    const std::string usual = on_gpu ? "methods,searches,calibrated,builds,halves,proposals"
                                     : "order,lines,methods,searches,calibrated,builds,halves,proposals";
    for (const std::string& name : arguments.texts("experiments", usual)) {
        const auto found = std::ranges::find(experiments, name, [](const auto& one) { return std::string(one.first); });
        if (found == std::end(experiments)) throw std::invalid_argument("unknown experiment: " + name);
        std::printf("%s\n", name.c_str());
        const auto begin = Clock::now();
        found->second(plan, pool);
        std::printf("# %s: %.1f s\n", name.c_str(), seconds_since(begin));
    }
}

}  // namespace

DataRequest Plan::request(const std::string& name, Metric metric, std::size_t most) const
{
    return {.name = name,
            .metric = metric,
            .folder = folder,
            .rows = quick() ? std::min<std::size_t>(most, generated.back()) : most,
            .queries = queries,
            .dimensions = quick() ? 16U : 96U};
}

std::unique_ptr<DataSet> Plan::load(const std::string& name, Metric metric, std::size_t most, ThreadPool& pool) const
{
    const DataRequest request = this->request(name, metric, most);
    if (!has_data(request)) {
        std::printf("skipped: the files of %s are not there\n", name.c_str());
        return nullptr;
    }
    const auto begin = Clock::now();
    auto data = std::make_unique<DataSet>(load_data(request, device, pool));
    std::printf("# %s: %zu rows of %zu dimensions, %zu queries with their neighbours in %.1f s\n", name.c_str(),
                data->rows, data->dimensions, data->asked(), seconds_since(begin));
    std::fflush(stdout);
    return data;
}

}  // namespace pgwarp::bench::pqtree

int main(int count, char** values)
{
    return pgwarp::bench::run_benchmark(count, values, pgwarp::bench::pqtree::run);
}
