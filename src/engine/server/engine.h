// State that all I/O threads share: the device, residency, builds, buffers, pools.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/build/builds.h"
#include "engine/device/device.h"
#include "engine/mirror/relation_files.h"
#include "engine/mirror/residency.h"
#include "engine/search/search_queue.h"
#include "engine/server/busy_poll.h"
#include "engine/server/options.h"
#include "engine/server/periodic.h"
#include "engine/server/process.h"
#include "engine/server/transfer_buffers.h"
#include "engine/server/watchdog.h"
#include "engine/server/worker.h"

namespace pgwarp
{

class Engine
{
public:
    Engine(const EngineOptions& options, Device& device);
    ~Engine();

    // Remembers the incarnation of the PostgreSQL server. When it changes, drops all mirrors and the connections of the
    // old one.
    void greet(std::uint64_t incarnation);
    // Begins to drain: new requests are refused, and Server::run() returns when the others are answered.
    void drain(const std::string& reason);
    // After a search: where delta rows cost too much, has a part made of them in the background.
    void index_delta(const std::shared_ptr<Mirror>& mirror);
    // Makes a part of the mirror's delta rows on the caller's thread and `pool`. Failures are logged, not thrown.
    void add_part(Mirror& mirror, ThreadPool& pool);
    bool draining() const { return draining_.load(std::memory_order_relaxed); }

    const EngineOptions options;
    Device& device;
    const Clock::time_point started = Clock::now();

private:
    Watchdog watchdog_;  // begins first and ends last: the destructors of later members wait for the device

public:
    BusyPoll busy_poll;
    ThreadPool search_pool;
    std::unique_ptr<ThreadPool> build_pool;  // of a lower priority
    std::unique_ptr<ThreadPool> ahead_pool;  // likewise, with few threads: searches keep most of the memory bandwidth
    ThreadPool inline_pool{1};
    const RelationFiles relation_files;
    Residency residency;
    TransferBuffers buffers;
    Builds builds{*build_pool, busy_poll};
    SearchQueue searches;
    Worker spread{2};  // answers searches of many indexes, and counts terms
    Worker loads{2};   // readies mirrors
    Worker copies;     // copies chunks, rows and arrays
    Worker parts;      // indexes delta rows

    std::atomic<std::uint32_t> connections{0};
    std::atomic<std::uint32_t> in_flight{0};
    // Of the server, set before serving: wakes it; drops the connections of other incarnations.
    std::function<void()> on_drain;
    std::function<void(std::uint64_t incarnation)> on_restart;
    std::atomic<bool (*)()> was_replaced = executable_was_replaced;

    // Bytes that the GPU with the most room has for an index. Bytes that `mirror` takes there count as free.
    std::uint64_t gpu_room(const Mirror* mirror = nullptr) const;

private:
    void tidy();

    std::atomic<bool> draining_{false};
    std::mutex greet_mutex_;
    std::uint64_t incarnation_ = 0;
    bool greeted_ = false;
    Periodic tidying_;  // the last member: its thread uses the others
};

}  // namespace pgwarp
