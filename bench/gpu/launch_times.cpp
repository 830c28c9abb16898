// Run times of the kernels of any program that uses CUDA: a library that the driver loads.
//
//   CUDA_INJECTION64_PATH=build/check/bench/gpu/liblaunch_times.so build/check/bench/gpu/cluster_bench
//
// When the program ends it prints for each kernel how often it ran, its median and largest duration on the device, and
// marks those above the limit that pgwarp sets itself (2 ms: a query waits no longer for a build). Profiling adds a
// little to short kernels and keeps kernels of several streams apart no less than usual.
//   LAUNCH_LIMIT_US   the limit, default 2000
//   LAUNCH_TIMES      a file to append the table to, default standard error
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

namespace
{

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
#else
using KernelRecord = CUpti_ActivityKernel9;
#endif

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

struct Durations {
    std::mutex mutex;
    std::map<std::string, std::vector<std::uint64_t>> by_kernel;  // mangled name -> ns
    std::size_t dropped = 0;
};

// Never destroyed: records arrive until the very end.
Durations& durations()
{
    static auto* one = new Durations();
    return *one;
}

bool succeeded(CUptiResult result, const char* what)
{
    if (result == CUPTI_SUCCESS) return true;
    const char* text = "";
    (void)cuptiGetResultString(result, &text);
    std::fprintf(stderr, "launch_times: %s: %s\n", what, text);
    return false;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records)
{
    *size = buffer_bytes;
    *most_records = 0;
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t, std::size_t valid)
{
    Durations& all = durations();
    const std::lock_guard lock(all.mutex);
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL)
            continue;
        const auto* kernel = reinterpret_cast<const KernelRecord*>(record);
        if (kernel->end > kernel->start) all.by_kernel[kernel->name].push_back(kernel->end - kernel->start);
    }
    std::size_t dropped = 0;
    (void)cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
    all.dropped += dropped;
    std::free(buffer);
}

// A kernel's name and template arguments: without the result and the parameters, without "(anonymous namespace)::".
std::string readable(const std::string& mangled)
{
    int status = 0;
    char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
    std::string name = status == 0 ? text : mangled;
    std::free(text);
    for (const char* const noise : {"(anonymous namespace)::", "void ", "pgwarp::cuda::"}) {
        for (std::size_t at; (at = name.find(noise)) != std::string::npos;) name.erase(at, std::string(noise).size());
    }
    // Parameters begin at the first parenthesis that is not in template arguments.
    int depth = 0;
    for (std::size_t at = 0; at < name.size(); ++at) {
        depth += (name[at] == '<') - (name[at] == '>');
        if (name[at] == '(' && depth == 0) name.resize(at);
    }
    constexpr std::size_t widest = 72;
    if (name.size() > widest) name = name.substr(0, widest - 3) + "...";
    return name;
}

double limit_us()
{
    const char* text = std::getenv("LAUNCH_LIMIT_US");
    return text != nullptr ? std::atof(text) : 2000;
}

void print_table(std::FILE* out, const Durations& all)
{
    struct Line {
        std::string name;
        std::size_t count;
        double median, largest, total;
    };
    const double limit = limit_us();
    std::vector<Line> lines;
    std::size_t launches = 0;
    std::size_t over = 0;
    for (const auto& [mangled, unsorted] : all.by_kernel) {
        std::vector<std::uint64_t> ns = unsorted;
        std::sort(ns.begin(), ns.end());
        const double total = static_cast<double>(std::accumulate(ns.begin(), ns.end(), std::uint64_t{0}));
        lines.push_back({readable(mangled), ns.size(), static_cast<double>(ns[ns.size() / 2]) / 1e3,
                         static_cast<double>(ns.back()) / 1e3, total / 1e6});
        launches += ns.size();
        over += static_cast<std::size_t>(ns.end() - std::upper_bound(ns.begin(), ns.end(), limit * 1e3));
    }
    std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.largest > b.largest; });
    std::fprintf(out, "\n%9s %11s %11s %11s  %s\n", "launches", "median us", "largest us", "total ms", "kernel");
    for (const Line& line : lines) {
        std::fprintf(out, "%9zu %11.1f %11.1f %11.2f  %s%s\n", line.count, line.median, line.largest, line.total,
                     line.name.c_str(), line.largest > limit ? "  OVER THE LIMIT" : "");
    }
    std::fprintf(out, "%zu launches of %zu kernels, %zu launches longer than %.0f us", launches, lines.size(), over,
                 limit);
    if (all.dropped > 0) std::fprintf(out, ", %zu not recorded", all.dropped);
    std::fprintf(out, "\n");
}

void finish()
{
    (void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    Durations& all = durations();
    const std::lock_guard lock(all.mutex);
    const char* path = std::getenv("LAUNCH_TIMES");
    std::FILE* out = path != nullptr ? std::fopen(path, "a") : nullptr;
    print_table(out != nullptr ? out : stderr, all);
    if (out != nullptr) std::fclose(out);
}

}  // namespace

// Called by the driver when it is initialised.
extern "C" int InitializeInjection()
{
    if (!succeeded(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "registering") ||
        !succeeded(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enabling"))
        return 0;
    (void)durations();
    return std::atexit(finish) == 0;
}
