#include "engine/server/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>

#include "numeric/control_group.h"
#include "numeric/processors.h"

namespace pgwarp
{

constexpr std::uint64_t small_index_values = 1U << 18;  // 2,048 rows of 128 dimensions

std::size_t default_io_threads()
{
    return std::clamp<std::size_t>(usable_processors() / 4, 2, 8);
}

std::optional<EngineOptions> parse_options(int argc, const char* const* argv, int& exit_code)
{
    EngineOptions options;
    CLI::App app{"pgwarp-engine: searches and builds pgwarp indexes; started by PostgreSQL's pgwarp launcher"};
    const std::map<std::string, DeviceChoice> devices{
        {"auto", DeviceChoice::automatic}, {"cuda", DeviceChoice::cuda}, {"cpu", DeviceChoice::cpu}};
    app.add_option("--socket", options.socket, "Socket to listen on");
    app.add_option("--lock", options.lock, "Lock file: one engine holds it");
    app.add_option("--device", options.device, "auto, cuda or cpu")->transform(CLI::CheckedTransformer(devices));
    app.add_option("--gpus", options.gpus, "GPUs to use, comma-separated (default: all)");
    app.add_option("--memory", options.memory, "Bytes that resident indexes may use (0: a share of what is free)");
    app.add_option("--threads", options.threads, "Threads of a search or a build (0: all cores that it may use)")
        ->check(CLI::Range(0, 1024));
    app.add_option("--io-threads", options.io_threads,
                   "Threads that serve connections (default: a quarter of the processors, 2 to 8)")
        ->check(CLI::Range(1, 64));
    app.add_option("--parent-pid", options.parent_pid, "Exit when this process is no longer the parent");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        exit_code = app.exit(error);
        return std::nullopt;
    }
    if (options.device == DeviceChoice::automatic) options.cpu_values = small_index_values;
    return options;
}

namespace
{

std::uint64_t available_memory()
{
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::string unit;
    std::uint64_t value = 0;
    while (file >> name >> value) {
        std::getline(file, unit);
        if (name == "MemAvailable:") return value * 1024;
    }
    return std::uint64_t{4} << 30;
}

}  // namespace

std::uint64_t default_memory()
{
    const std::uint64_t free_bytes = std::min(available_memory(), memory_left_to(control_groups()));
    return std::max<std::uint64_t>(free_bytes / 4 * 3, std::uint64_t{64} << 20);
}

}  // namespace pgwarp
