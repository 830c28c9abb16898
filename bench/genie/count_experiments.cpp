// Times and memory of searches for the rows of largest count.
#include <algorithm>

#include "brute_counts.h"
#include "experiments.h"

namespace pgwarp::bench::genie
{

namespace
{

using pgwarp::matchcount::KeywordRows;

constexpr std::uint32_t k = 100;  // section 7.1.3

// Searches and checks the first queries of a set.
class Measurement
{
public:
    Measurement(const PartSet& set, std::size_t rows, const Plan& plan, ThreadPool& pool)
        : set_(set), rows_(rows), view_(set.first(rows)), plan_(plan), pool_(pool)
    {
    }

    void search(Counter& counter, std::size_t queries)
    {
        queries_ = queries;
        const std::size_t repeat = queries * rows_ > 100000000 ? std::min<std::size_t>(plan_.repeat, 1) : plan_.repeat;
        const std::span<const std::vector<Item>> asked = std::span(set_.queries).first(queries);
        times_ = counter.search(asked, k, repeat, answers_);
        right_ = 0;
        const std::size_t checked = std::min(plan_.checked, queries);
        while (truth_.size() < checked) truth_.push_back(brute_counts(view_, set_.queries[truth_.size()], k, pool_));
        for (std::size_t query = 0; query < checked; ++query)
            right_ += equal_answers(answers_[query], truth_[query]) ? 1U : 0U;
    }
    const SearchTimes& times() const { return times_; }
    // "right/checked": queries whose answers are the brute force's.
    std::string right() const
    {
        return std::to_string(right_) + "/" + std::to_string(std::min(plan_.checked, queries_));
    }
    // The share of queries with a target whose k rows hold it; "-" without.
    std::string target_found() const
    {
        std::size_t found = 0;
        std::size_t asked = 0;
        for (std::size_t query = 0; query < queries_; ++query) {
            const std::uint32_t target = set_.targets[query];
            if (target >= rows_ || answers_[query].empty() || answers_[query][0].row == no_row) continue;
            ++asked;
            found += std::ranges::any_of(answers_[query], [&](const auto& row) { return row.row == target; }) ? 1U : 0U;
        }
        return asked == 0 ? "-" : cell(static_cast<double>(found) / static_cast<double>(asked));
    }

private:
    const PartSet& set_;
    std::size_t rows_;
    KeywordRows view_;
    const Plan& plan_;
    ThreadPool& pool_;
    std::vector<Answer> truth_;
    std::vector<Answer> answers_;
    SearchTimes times_;
    std::size_t queries_ = 0;
    std::size_t right_ = 0;
};

struct Tables {
    explicit Tables(const Output& output)
        : stages(output, "table1",
                 "device method data parts rows queries k parts_s build_s transfer_s query_transfer_s match_s select_s "
                 "right target_found"),
          queries(output, "figure13", "device method data rows queries k total_s query_ms right target_found"),
          rows(output, "figure7", "device method data rows queries k total_s right target_found"),
          memory(output, "figure8",
                 "device method data rows queries k total_s counter_bytes table_bytes array_bytes right "
                 "target_found")
    {
    }
    Table stages;
    Table queries;
    Table rows;
    Table memory;
};

// All queries of a set, and fewer.
void run_whole(const PartSet& set, Counter& counter, const Plan& plan, Tables& tables, ThreadPool& pool)
{
    Measurement measurement(set, set.rows(), plan, pool);
    const BuildTimes built = counter.build(set, set.rows());
    std::vector<std::size_t> numbers;
    for (const std::size_t number : {1, 16, 32, 64, 128, 256, 512, 1024, 10000})
        if (number <= std::min(counter.most_queries(), set.queries.size())) numbers.push_back(number);
    const std::size_t whole = *std::find_if(numbers.rbegin(), numbers.rend(), [](std::size_t n) { return n <= 1024; });
    for (const std::size_t number : numbers) {
        measurement.search(counter, number);
        const SearchTimes& times = measurement.times();
        tables.queries.row(counter.device(), counter.name(), set.name, set.rows(), number, k, times.whole_s(),
                           1e3 * times.whole_s() / static_cast<double>(number), measurement.right(),
                           measurement.target_found());
        if (number != whole) continue;
        tables.stages.row(counter.device(), counter.name(), set.name, set.parts, set.rows(), number, k,
                          set.make_seconds, built.build_s, built.transfer_s, times.transfer_s, times.match_s,
                          times.select_s, measurement.right(), measurement.target_found());
        const CountMemory memory = counter.memory();
        tables.memory.row(counter.device(), counter.name(), set.name, set.rows(), number, k, times.whole_s(),
                          memory.counters, memory.tables, 4.0 * static_cast<double>(set.rows()), measurement.right(),
                          measurement.target_found());
    }
}

// Quarters of the rows.
void run_parts(const PartSet& set, Counter& counter, const Plan& plan, Tables& tables, ThreadPool& pool)
{
    const std::size_t number =
        std::min({counter.most_queries(), set.queries.size(), std::size_t{counter.device() == "cpu" ? 64U : 512U}});
    for (std::size_t quarter = 1; quarter <= 4; ++quarter) {
        Measurement measurement(set, set.rows() * quarter / 4, plan, pool);
        counter.build(set, set.rows() * quarter / 4);
        measurement.search(counter, number);
        tables.rows.row(counter.device(), counter.name(), set.name, set.rows() * quarter / 4, number, k,
                        measurement.times().whole_s(), measurement.right(), measurement.target_found());
    }
}

}  // namespace

void run_counts(const Plan& plan, std::span<const std::unique_ptr<Counter>> counters, ThreadPool& pool)
{
    Tables tables(plan.output);
    for (const std::string& name : plan.data) {
        if (!plan.sources.has(name)) {
            std::printf("skipped: counts of %s, whose files are not there\n", name.c_str());
            continue;
        }
        std::printf("%s\n", name.c_str());
        const PartSet set = make_part_set(name, plan.sources, plan.sources.quick() ? 64 : 1024, pool);
        for (const auto& counter : counters) {
            if (!counter->serves(set)) continue;
            run_whole(set, *counter, plan, tables, pool);
            run_parts(set, *counter, plan, tables, pool);
        }
    }
}

void run_balance(const Plan& plan, std::span<const std::unique_ptr<Counter>> counters, ThreadPool& pool)
{
    if (!plan.sources.has("adult")) {
        std::printf("skipped: figure 11, adult.data is not there\n");
        return;
    }
    const std::size_t base_rows = make_adult(plan.sources, 0, 1, 0).rows();
    const std::size_t copies = plan.copies != 0 ? plan.copies : plan.sources.quick() ? 3 : 100000000 / base_rows + 1;
    const PartSet set = make_adult(plan.sources, 1024, copies, 0);
    Table table(plan.output, "figure11",
                "device method data rows queries k build_s match_s other_s right target_found");
    Measurement measurement(set, set.rows(), plan, pool);
    for (const auto& counter : counters) {
        if (!counter->serves(set)) continue;
        const BuildTimes built = counter->build(set, set.rows());
        for (const std::size_t number : {1, 2, 4, 8, 16, 1024}) {
            if (number > counter->most_queries()) continue;
            measurement.search(*counter, number);
            const SearchTimes& times = measurement.times();
            table.row(counter->device(), counter->name(), set.name, set.rows(), number, k, built.build_s, times.match_s,
                      times.transfer_s + times.select_s, measurement.right(), measurement.target_found());
        }
    }
}

}  // namespace pgwarp::bench::genie
