// The experiments of GENIE's paper on the data that is at hand: see bench/genie/run.
//
//   genie_bench --out FOLDER [--data FOLDER | --quick] [--experiments LIST] [--sets LIST] [--device cpu|cuda]
//     [--repeat N] [--checked N] [--rows N] [--copies N] [--threads N] [--machine TEXT] [--commit TEXT]
#include "../gpu/harness.h"
#include "experiments.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::bench::genie;

void run(const bench::Arguments& arguments)
{
    ThreadPool pool(arguments.number("threads", 0));
    const bool quick = arguments.given.contains("quick");
    const std::string folder = arguments.text("data", "");
    if (quick != folder.empty()) throw std::invalid_argument("give either --data FOLDER or --quick");
    Plan plan;
    plan.sources = Sources(folder);
    plan.output = {arguments.text("out", "."), arguments.text("machine", "-"), arguments.text("commit", "-")};
    plan.data = arguments.texts("sets", "tweets,adult,titles,proteins,fashion,sift");
    plan.repeat = arguments.number("repeat", 3);
    plan.checked = arguments.number("checked", 2);
    plan.rows = arguments.number("rows", 0);
    plan.copies = arguments.number("copies", 0);
    const bool device = arguments.text("device", "cpu") == "cuda";
    const auto counters = device ? device_counters() : host_counters(pool);
    if (counters.empty()) throw std::runtime_error("this program was built without CUDA");
    // Accuracy is the same on every device: it is measured on the CPU.
    const std::string usual = device ? "counts,balance" : "functions,counts,edits,kernel,ratio,recall";
    for (const std::string& experiment : arguments.texts("experiments", usual)) {
        if (experiment == "functions") {
            run_functions(plan);
        } else if (experiment == "counts") {
            run_counts(plan, counters, pool);
        } else if (experiment == "balance") {
            run_balance(plan, counters, pool);
        } else if (experiment == "edits") {
            run_edits(plan, pool);
        } else if (experiment == "kernel") {
            run_kernel(plan, pool);
        } else if (experiment == "recall") {
            run_peers(plan, pool);
        } else if (experiment == "ratio") {
            run_ratio(plan, pool);
        } else {
            throw std::invalid_argument("unknown experiment: " + experiment);
        }
    }
}

}  // namespace

int main(int count, char** values)
{
    return bench::run_benchmark(count, values, run);
}
