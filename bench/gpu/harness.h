// Helpers of the benchmarks of the CUDA module: arguments, clocks, rows of a CSV file.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace pgwarp::bench
{

// "--NAME VALUE" pairs, in any order. A name without a value is 1.
struct Arguments {
    std::map<std::string, std::string> given;

    Arguments(int count, char** values)
    {
        const auto is_name = [&](int i) { return std::string(values[i]).starts_with("--"); };
        for (int i = 1; i < count; ++i) {
            if (!is_name(i)) throw std::invalid_argument(std::string("not an option: ") + values[i]);
            const bool has_value = i + 1 < count && !is_name(i + 1);
            given[values[i] + 2] = has_value ? values[i + 1] : "1";
            if (has_value) ++i;
        }
    }
    std::string text(const char* name, const std::string& otherwise) const
    {
        const auto found = given.find(name);
        return found != given.end() ? found->second : otherwise;
    }
    std::size_t number(const char* name, std::size_t otherwise) const
    {
        const auto found = given.find(name);
        return found != given.end() ? std::stoull(found->second) : otherwise;
    }
    std::vector<std::string> texts(const char* name, const std::string& otherwise) const
    {
        std::vector<std::string> list;
        std::stringstream stream(text(name, otherwise));
        for (std::string item; std::getline(stream, item, ',');) list.push_back(item);
        return list;
    }
    std::vector<std::size_t> numbers(const char* name, const std::string& otherwise) const
    {
        std::vector<std::size_t> list;
        for (const std::string& item : texts(name, otherwise)) list.push_back(std::stoull(item));
        return list;
    }
    // --csv: rows are appended. Closed where none is given.
    std::ofstream csv() const
    {
        std::ofstream file;
        if (given.contains("csv")) file.open(given.at("csv"), std::ios::app);
        return file;
    }
};

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin)
{
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

inline double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// The body of a main(): an exception ends the program with its message.
inline int run_benchmark(int count, char** values, void (*run)(const Arguments&))
{
    try {
        run(Arguments(count, values));
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", values[0], error.what());
        return EXIT_FAILURE;
    }
}

}  // namespace pgwarp::bench
