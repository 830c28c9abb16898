// Peak memory of processes while something runs, by sampling /proc.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace pgwarp::bench
{

class MemorySampler
{
public:
    // The memory of a process that counts: all resident memory, or the private part (a backend maps the shared
    // buffers).
    enum class Kind { resident, anonymous };
    struct Process {
        int id;
        Kind kind;
    };

    explicit MemorySampler(std::vector<Process> processes);

    // Stop, and give each process's peak in MB back; 0 for one that cannot be seen.
    std::vector<double> stop();

private:
    void sample(std::stop_token stop);

    std::vector<Process> processes_;
    std::vector<double> peaks_;
    std::jthread thread_;
};

}  // namespace pgwarp::bench
