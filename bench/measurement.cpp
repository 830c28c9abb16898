#include "measurement.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

namespace pgwarp::bench
{

namespace
{

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration time)
{
    return std::chrono::duration<double, std::micro>(time).count();
}

double percentile(const std::vector<double>& sorted, double part)
{
    const auto place = static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1));
    return sorted[place];
}

// Works for the load's time, and notes the time of each piece.
void work_for(const Load& load, std::size_t offset, const Work& work, std::vector<double>& latencies)
{
    const auto end = Clock::now() + std::chrono::duration<double>(load.seconds);
    for (std::size_t i = 0; latencies.size() < load.least || Clock::now() < end; ++i) {
        const auto before = Clock::now();
        work(offset + i);
        latencies.push_back(microseconds(Clock::now() - before));
    }
}

}  // namespace

Measurement summarise(const std::vector<std::vector<double>>& latencies, double elapsed_us)
{
    std::vector<double> all;
    for (const auto& client : latencies) all.insert(all.end(), client.begin(), client.end());
    std::ranges::sort(all);
    return {static_cast<double>(all.size()) / elapsed_us * 1e6, percentile(all, 0.5), percentile(all, 0.99), 0};
}

Measurement run_clients(const Load& load, const std::function<Work()>& make)
{
    const auto count = static_cast<std::size_t>(load.clients);
    std::vector<std::vector<double>> latencies(count);
    std::vector<Work> work;
    for (std::size_t i = 0; i < count; ++i) work.push_back(make());
    // Set by the last to arrive: this thread may wake late where clients are more than cores.
    Clock::time_point started;
    std::barrier ready(load.clients + 1, [&]() noexcept { started = Clock::now(); });
    std::exception_ptr failure;
    std::mutex failure_lock;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            const std::size_t offset = i * 7919;
            bool warm = false;
            try {
                for (std::size_t j = 0; j < load.warm_up; ++j) work[i](offset + j);
                warm = true;
                ready.arrive_and_wait();
                work_for(load, offset, work[i], latencies[i]);
            } catch (...) {
                const std::lock_guard lock(failure_lock);
                failure = std::current_exception();
                if (!warm) ready.arrive_and_drop();
            }
        });
    }
    ready.arrive_and_wait();
    for (std::jthread& thread : threads) thread.join();
    const double elapsed = microseconds(Clock::now() - started);
    if (failure) std::rethrow_exception(failure);
    return summarise(latencies, elapsed);
}

double median(std::vector<double> values)
{
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Measurement median_of(const std::vector<Measurement>& rounds)
{
    const auto of = [&](double Measurement::*field) {
        std::vector<double> values;
        for (const Measurement& round : rounds) values.push_back(round.*field);
        return median(std::move(values));
    };
    return {of(&Measurement::queries_per_second), of(&Measurement::median_us), of(&Measurement::p99_us),
            of(&Measurement::engine_us)};
}

}  // namespace pgwarp::bench
