#include "engine_delta.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "engine/mirror/mirror.h"
#include "engine/search/search.h"
#include "methods/arrays.h"
#include "numeric/distance.h"
#include "protocol/calibration.h"

namespace pgwarp::bench
{

namespace
{

constexpr std::size_t append_rows = 64;  // rows that are appended at once
constexpr int rounds = 5;
constexpr std::size_t part_steps = 16;  // times that new rows are put into a part

Tid tid_of(std::size_t row)
{
    return {static_cast<std::uint32_t>(row / 50), static_cast<std::uint16_t>(row % 50 + 1), 0};
}

std::size_t row_of(const Tid& tid)
{
    return std::size_t{tid.block} * 50 + tid.offset - 1;
}

std::shared_ptr<Mirror> load(const DeltaRun& run, const Builder& index, std::size_t rows, ThreadPool& pool)
{
    std::vector<ArrayShape> arrays = index.arrays();
    arrays.push_back(make_array_shape(array_tid_block, ArrayType::u32, rows, 1));
    arrays.push_back(make_array_shape(array_tid_offset, ArrayType::u16, rows, 1));
    const MethodFactory& method = *find_method(run.shape.method);
    auto mirror =
        std::make_shared<Mirror>(MirrorKey{}, run.shape, index.effective_options(), rows, arrays, method, false);
    std::vector<std::uint32_t> blocks;
    std::vector<std::uint16_t> offsets;
    for (std::size_t row = 0; row < rows; ++row) {
        blocks.push_back(tid_of(row).block);
        offsets.push_back(tid_of(row).offset);
    }
    std::vector<std::byte> bytes;
    for (std::uint32_t i = 0; i < arrays.size() - 2; ++i) {
        bytes.resize(arrays[i].bytes());
        index.read(arrays[i].name, 0, bytes);
        mirror->write(i, 0, bytes);
    }
    mirror->write(static_cast<std::uint32_t>(arrays.size()) - 2, 0, std::as_bytes(std::span(blocks)));
    mirror->write(static_cast<std::uint32_t>(arrays.size()) - 1, 0, std::as_bytes(std::span(offsets)));
    mirror->finish_load(pool);
    return mirror;
}

// The k nearest rows of each query; delta rows have the numbers after the index's.
std::vector<std::vector<std::size_t>> find_truth(const DeltaRun& run, std::span<const float> rows,
                                                 std::span<const float> delta, ThreadPool& pool)
{
    const std::size_t dimensions = run.shape.dimensions;
    const auto metric = static_cast<Metric>(run.shape.metric);
    std::vector<std::vector<std::size_t>> truth(run.queries.size() / dimensions);
    pool.parallel_for(truth.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            std::vector<std::pair<double, std::size_t>> all;
            for (const std::span<const float> part : {rows, delta}) {
                for (std::size_t i = 0; i < part.size(); i += dimensions) {
                    all.emplace_back(
                        canonical_distance(metric, run.queries.data() + q * dimensions, part.data() + i, dimensions),
                        all.size());
                }
            }
            const auto last = all.begin() + run.k;
            std::partial_sort(all.begin(), last, all.end());
            for (auto item = all.begin(); item != last; ++item) truth[q].push_back(item->second);
        }
    });
    return truth;
}

// Appends delta rows [begin, end), to one log after the other.
void append(Mirror& mirror, const DeltaRun& run, std::size_t begin, std::size_t end)
{
    const std::size_t dimensions = run.shape.dimensions;
    for (std::size_t at = begin; at < end;) {
        const std::size_t count = std::min(append_rows, end - at);
        std::vector<Tid> tids;
        for (std::size_t i = 0; i < count; ++i) tids.push_back(tid_of(mirror.rows() + at + i));
        const auto log = static_cast<std::uint32_t>(at / append_rows % delta_log_count);
        mirror.add_delta(log, mirror.snapshot()->logs[log].end, tids,
                         dense_rows(run.delta.data() + at * dimensions, count, dimensions));
        at += count;
    }
}

void measure(const DeltaRun& run, const std::shared_ptr<Mirror>& mirror, std::int64_t effort,
             const std::vector<std::vector<std::size_t>>& truth, ThreadPool& pool)
{
    const std::size_t dimensions = run.shape.dimensions;
    SearchSettings settings;
    settings.mirror = mirror;
    settings.k = run.k;
    settings.effort = effort;
    SearchAnswer answer;
    // Of each call the best of some rounds: other work of the machine is no cost of the delta.
    std::vector<double> times((truth.size() + run.batch - 1) / run.batch, HUGE_VAL);
    double found = 0;
    for (int round = 0; round < rounds; ++round) {
        found = 0;
        for (std::size_t q = 0; q < truth.size(); q += run.batch) {
            const std::size_t count = std::min(run.batch, truth.size() - q);
            const auto start = Clock::now();
            run_search(settings, dense_rows(run.queries.data() + q * dimensions, count, dimensions), nullptr, pool,
                       answer);
            const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
            double& time = times[q / run.batch];
            time = std::min(time, seconds * 1e6 / static_cast<double>(count));
            std::size_t at = 0;
            for (std::size_t i = 0; i < count; ++i) {
                for (const std::size_t end = at + answer.counts[i]; at < end; ++at) {
                    const auto& wanted = truth[q + i];
                    const std::size_t row = row_of(answer.results[at].tid);
                    found += std::find(wanted.begin(), wanted.end(), row) != wanted.end() ? 1 : 0;
                }
            }
        }
    }
    std::sort(times.begin(), times.end());
    const auto snapshot = mirror->snapshot();
    std::printf(
        "delta_rows,%lu,plain_rows,%lu,parts,%zu,batch,%zu,threads,%zu,recall,%.4f,median_us,%.1f,p99_us,%.1f\n",
        static_cast<unsigned long>(snapshot->delta_rows()), static_cast<unsigned long>(snapshot->plain_rows()),
        snapshot->parts.size(), run.batch, pool.threads(), found / static_cast<double>(truth.size() * run.k),
        times[times.size() / 2], times[times.size() * 99 / 100]);
    std::fflush(stdout);
}

}  // namespace

void measure_delta(const DeltaRun& run, const Builder& index, ThreadPool& pool)
{
    const std::size_t dimensions = run.shape.dimensions;
    const std::size_t rows = run.rows.size() / dimensions;
    const EffortChoice choice = choose_effort(index.calibration(), run.k, run.recall);
    ThreadPool searching(run.threads);
    for (const double percentage : run.percentages) {
        const auto count = static_cast<std::size_t>(static_cast<double>(rows) * percentage / 100);
        const auto truth = find_truth(run, run.rows, run.delta.subspan(0, count * dimensions), pool);
        const auto plain = load(run, index, rows, pool);
        append(*plain, run, 0, count);
        measure(run, plain, choice.effort, truth, searching);
        if (count == 0) continue;
        const auto indexed = load(run, index, rows, pool);
        double seconds = 0;
        for (std::size_t step = 0; step < part_steps; ++step) {
            append(*indexed, run, count * step / part_steps, count * (step + 1) / part_steps);
            const auto start = Clock::now();
            indexed->add_part(searching, [](std::uint64_t) {});
            seconds += std::chrono::duration<double>(Clock::now() - start).count();
        }
        std::printf("parts_ms,%.1f,bytes_more,%ld,", seconds * 1e3,
                    static_cast<long>(indexed->memory_bytes() - plain->memory_bytes()));
        measure(run, indexed, choice.effort, truth, searching);
    }
}

}  // namespace pgwarp::bench
