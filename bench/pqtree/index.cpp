// Builds, loads and searches indexes.
#include "index.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "../gpu/harness.h"
#include "methods/recall/searches.h"
#include "protocol/calibration.h"

namespace pgwarp::bench::pqtree
{

namespace
{

constexpr std::size_t most_single_queries = 250;

// Adds up the seconds of the phases of a build.
class Phases
{
public:
    explicit Phases(const Device& device) : device_(device) {}
    BuildProgress progress()
    {
        return {[this](const char* phase, std::uint64_t done, std::uint64_t) { enter(phase, done); }, nullptr};
    }
    std::string finish()
    {
        enter("", 0);
        return text_;
    }
    // Prints when the steps of long phases began.
    void print_steps() const
    {
        for (const auto& [phase, steps] : steps_) {
            if (steps.size() < 3 || steps.size() > most_steps ||
                steps.back().second - steps.front().second < long_phase)
                continue;
            std::printf("#   %s:", phase.c_str());
            for (const auto& [done, at] : steps)
                std::printf(" %llu@%.2f", static_cast<unsigned long long>(done), at - steps.front().second);
            std::printf("\n");
        }
    }

private:
    static constexpr double long_phase = 0.5;
    static constexpr std::size_t most_steps = 50;

    void enter(const std::string& phase, std::uint64_t done)
    {
        steps_[phase].emplace_back(done, device_.seconds());
        if (phase == phase_) return;
        if (!phase_.empty()) {
            char part[96];
            std::snprintf(part, sizeof(part), "%s%s %.3g", text_.empty() ? "" : "; ", phase_.c_str(),
                          device_.seconds() - begin_);
            text_ += part;
        }
        phase_ = phase;
        begin_ = device_.seconds();
    }

    const Device& device_;
    std::string phase_;
    std::string text_;
    double begin_ = 0;
    std::map<std::string, std::vector<std::pair<std::uint64_t, double>>> steps_;  // what was done, and when
};

std::shared_ptr<RowBuffer> rows_of(const DataSet& data, ThreadPool& pool)
{
    if (data.shared) return data.shared;
    auto rows = std::make_shared<RowBuffer>(data.dimensions);
    std::vector<Tid> tids(data.rows);
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    rows->append(tids, data.base);
    rows->sort_by_tid(&pool);
    return rows;
}

}  // namespace

std::uint32_t Index::width(std::uint32_t k) const
{
    const auto metric = static_cast<Metric>(shape.metric);
    return search_width(choice.method->result_promise(builder->effective_options(), shape.element, metric), k);
}

Index build_index(const std::string& choice, const DataSet& data, const Device& device, ThreadPool& pool)
{
    Index index{.device = &device, .choice = IndexChoice(choice)};
    index.rows = data.rows;
    index.shape.method = index.choice.method->method;
    index.shape.element = ElementType::float32;
    index.shape.metric = static_cast<std::uint8_t>(data.metric);
    index.shape.dimensions = static_cast<std::uint32_t>(data.dimensions);
    const MethodFactory* method = device.method(index.shape.method);
    const std::shared_ptr<RowBuffer> rows = rows_of(data, pool);
    index.builder = method->make_builder(index.shape, index.choice.options);
    Phases phases(device);
    double begin = device.seconds();
    index.builder->run(*rows, phases.progress(), pool);
    index.build_s = device.seconds() - begin;
    index.phases = phases.finish();
    index.calibration = index.builder->calibration();
    begin = device.seconds();
    index.searcher = method->make_searcher(index.shape, index.builder->effective_options(), index.builder->arrays());
    // The arrays may lie in the memory of the rows.
    feed_searcher(*index.builder, *index.searcher, pool, std::uint64_t{32} << 20);
    index.load_s = device.seconds() - begin;
    std::printf("# %s, %s: built in %.3f s (%s), loaded in %.3f s, %.1f bytes a row\n", data.name.c_str(),
                choice.c_str(), index.build_s, index.phases.c_str(), index.load_s, index.bytes_a_row());
    phases.print_steps();
    std::fflush(stdout);
    return index;
}

Found search(const Index& index, const DataSet& data, const Search& asked, ThreadPool& pool)
{
    SearchBatch batch;
    batch.k = asked.k;
    batch.effort = asked.effort;
    batch.settings = asked.settings;
    const std::size_t size = asked.batch == 0 ? data.asked() : std::min(asked.batch, data.asked());
    const std::size_t queries = size == 1 ? std::min(data.asked(), most_single_queries) : data.asked();
    Found found;
    found.rows.resize(data.asked());
    std::vector<double> times;
    std::vector<std::vector<RowResult>> results;
    // The first round warms up.
    for (std::size_t round = 0; round <= asked.rounds; ++round) {
        for (std::size_t first = 0; first < queries; first += size) {
            batch.count = std::min(size, queries - first);
            batch.queries = std::span(data.queries).subspan(first * data.dimensions, batch.count * data.dimensions);
            const double begin = index.device->seconds();
            index.searcher->search(batch, results, pool);
            const double us = 1e6 * (index.device->seconds() - begin);
            if (round > 0) times.push_back(us / static_cast<double>(batch.count));
            for (std::size_t i = 0; round == 0 && i < batch.count; ++i)
                for (const RowResult& result : results[i]) found.rows[first + i].push_back(result.row);
        }
        if (round == 0 && asked.rounds == 0) return found;
    }
    found.us = median(times);
    return found;
}

double nearest_within(const Found& found, const DataSet& data, std::size_t n)
{
    std::size_t hits = 0;
    std::size_t queries = 0;
    for (std::size_t q = 0; q < found.rows.size(); ++q) {
        if (found.rows[q].empty()) continue;
        const auto first = std::span(found.rows[q]).first(std::min(n, found.rows[q].size()));
        hits += std::ranges::count(first, data.truth[q].front()) > 0;
        ++queries;
    }
    return static_cast<double>(hits) / static_cast<double>(std::max<std::size_t>(1, queries));
}

double recall_of(const Found& found, const DataSet& data, std::size_t k)
{
    std::size_t hits = 0;
    std::size_t wanted = 0;
    for (std::size_t q = 0; q < found.rows.size(); ++q) {
        if (found.rows[q].empty()) continue;
        const auto truth = std::span(data.truth[q]).first(std::min(k, data.truth[q].size()));
        for (const std::uint32_t row : truth) hits += std::ranges::count(found.rows[q], row) > 0;
        wanted += truth.size();
    }
    return static_cast<double>(hits) / static_cast<double>(std::max<std::size_t>(1, wanted));
}

}  // namespace pgwarp::bench::pqtree
