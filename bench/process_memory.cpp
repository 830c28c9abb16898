#include "process_memory.h"

#include <algorithm>
#include <chrono>
#include <fstream>

namespace pgwarp::bench
{

namespace
{

double read_memory(const MemorySampler::Process& process)
{
    const std::string field = process.kind == MemorySampler::Kind::resident ? "VmRSS:" : "RssAnon:";
    std::ifstream file("/proc/" + std::to_string(process.id) + "/status");
    for (std::string word; file >> word;) {
        if (word != field) continue;
        double kilobytes = 0;
        file >> kilobytes;
        return kilobytes / 1024;
    }
    return 0;
}

}  // namespace

MemorySampler::MemorySampler(std::vector<Process> processes)
    : processes_(std::move(processes)),
      peaks_(processes_.size()),
      thread_([this](std::stop_token stop) { sample(stop); })
{
}

void MemorySampler::sample(std::stop_token stop)
{
    while (!stop.stop_requested()) {
        for (std::size_t i = 0; i < processes_.size(); ++i) peaks_[i] = std::max(peaks_[i], read_memory(processes_[i]));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

std::vector<double> MemorySampler::stop()
{
    thread_.request_stop();
    thread_.join();
    return peaks_;
}

}  // namespace pgwarp::bench
