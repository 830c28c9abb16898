#include "engine/server/engine.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "engine/server/log.h"
#include "numeric/processors.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t search_workers = 3;
constexpr std::size_t fewest_copiers = 2;
constexpr std::size_t most_copiers = 8;
constexpr auto tidy_interval = std::chrono::seconds(1);
// For a GPU without a known limit: bytes freed there still make its room larger.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;
constexpr std::size_t ahead_share = 4;  // one thread in 4, for loads that no search waits for

// Bytes of host memory for mirrors. Beside GPUs, engine_memory limits each GPU; mirrors that don't fit there lie on the
// host and need room, too.
std::uint64_t host_memory(const EngineOptions& options, const Device& device)
{
    if (options.memory == 0) return default_memory();
    return device.on_cuda() ? std::max(options.memory, default_memory()) : options.memory;
}

// Threads inherit the nice value of the one that starts them.
std::unique_ptr<ThreadPool> make_background_pool(std::size_t threads)
{
    std::unique_ptr<ThreadPool> pool;
    std::thread([&pool, threads] {
        ::setpriority(PRIO_PROCESS, 0, build_nice);
        pool = std::make_unique<ThreadPool>(threads);
    }).join();
    return pool;
}

}  // namespace

Engine::Engine(const EngineOptions& given, Device& used)
    : options(given),
      device(used),
      watchdog_([this] { return device.patience_left(); }, end_hung_engine),
      busy_poll(given.processors == 0 ? usable_processors() : given.processors, system_processors(), given.io_threads),
      search_pool(given.threads),
      build_pool(make_background_pool(given.threads)),
      ahead_pool(make_background_pool(std::max<std::size_t>(1, given.threads / ahead_share))),
      relation_files(given.data_directory),
      residency(host_memory(given, used), std::chrono::minutes(1),
                [this](const MirrorKey& key) { return relation_files.is_gone(key); }),
      buffers(bulk_buffers, query_buffers),
      searches(search_workers, search_pool, busy_poll),
      copies(std::clamp(given.threads / 2, fewest_copiers, most_copiers), build_nice),
      parts(1, build_nice),
      tidying_(tidy_interval, [this] { tidy(); })
{
    device.set_relief([this](std::int32_t gpu, std::uint64_t bytes) { residency.evict_idle_of(gpu, bytes); });
}

Engine::~Engine()
{
    device.set_relief(nullptr);
}

std::uint64_t Engine::gpu_room(const Mirror* mirror) const
{
    std::uint64_t most = 0;
    for (const PgwarpDeviceMemory& memory : device.memory()) {
        const std::uint64_t allowed = memory.allowed != 0 ? memory.allowed : no_limit;
        std::uint64_t room = allowed - std::min(memory.used, allowed);
        if (mirror != nullptr && mirror->searcher().residence().gpu == memory.gpu) room += mirror->device_bytes();
        most = std::max(most, room);
    }
    return most;
}

void Engine::tidy()
{
    try {
        residency.drop_gone();
        residency.return_to_gpu(gpu_room());
    } catch (...) {
        // The next run comes a second later.
        log_line(LogLevel::log, std::string("indexes are not looked through: ") + describe_exception().message);
    }
}

void Engine::greet(std::uint64_t incarnation)
{
    std::lock_guard lock(greet_mutex_);
    if (greeted_ && incarnation_ == incarnation) return;
    if (greeted_) {
        log_line(LogLevel::log, "the server was restarted: dropping all resident indexes");
        residency.clear();
        on_restart(incarnation);
    }
    greeted_ = true;
    incarnation_ = incarnation;
}

void Engine::index_delta(const std::shared_ptr<Mirror>& mirror)
{
    if (draining() || !mirror->wants_part()) return;
    parts.post([this, mirror] { add_part(*mirror, *build_pool); });
}

void Engine::add_part(Mirror& mirror, ThreadPool& pool)
{
    const BusyPoll::Work work(busy_poll, pool.threads());
    try {
        mirror.add_part(pool, [&](std::uint64_t bytes) { residency.make_room(bytes, &mirror); });
    } catch (...) {
        // Searches are slower, but right.
        log_line(LogLevel::log, std::string("delta rows of an index are not indexed: ") + describe_exception().message);
    }
}

void Engine::drain(const std::string& reason)
{
    if (draining_.exchange(true)) return;
    log_line(LogLevel::log, "shutting down: " + reason);
    if (on_drain) on_drain();
}

}  // namespace pgwarp
