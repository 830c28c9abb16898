// The command line of pgwarp-engine. Paths are relative to the working directory, which is the data directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/messages.h"

namespace pgwarp
{

enum class DeviceChoice { automatic, cuda, cpu };

// A quarter of the processors, 2 to 8: with 2 I/O threads on 16 processors, 64 clients waited for them while processors
// were idle.
std::size_t default_io_threads();

struct EngineOptions {
    std::string socket = socket_path;
    std::string lock = lock_path;
    std::string data_directory = ".";
    DeviceChoice device = DeviceChoice::automatic;
    std::string gpus;          // device ordinals, comma-separated; empty = all
    std::uint64_t memory = 0;  // bytes for mirrors; 0 = a share of what is free
    // Indexes of at most this number of values (rows times dimensions, or words of lists) are served by the CPU even
    // beside a GPU: the CPU answers such a search before a GPU has begun it, and searches many partitions of a table at
    // once.
    std::uint64_t cpu_values = 0;
    std::size_t threads = 0;                        // of a search or a build; 0 = all cores
    std::size_t io_threads = default_io_threads();  // they answer small searches themselves
    std::size_t processors = 0;                     // of the engine; 0 = all that the system allows
    int parent_pid = 0;                             // exit with this parent; 0 = none
};

// Parses the command line. Without a result the process exits with exit_code, after help or an error was printed.
std::optional<EngineOptions> parse_options(int argc, const char* const* argv, int& exit_code);

// Bytes that mirrors may use when none are given: three quarters of the memory that is free now, cgroup included.
std::uint64_t default_memory();

}  // namespace pgwarp
