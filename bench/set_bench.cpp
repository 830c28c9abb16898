// Measures searches of sets by the Jaccard distance without a database: recall against time by signatures, beside the
// exact search by common elements.
//
//   set_bench --rows 20000 --size 4000 --kind groups
//
// Sets are documents: elements by Zipf's law. Under `groups` the documents of a group of twenty share a part, from a
// fifth to all. Under `duplicates` two of five documents are nearly equal. Under `random` they share what chance gives.
// A query is another document of the kind. Recall counts found rows at most as far as the k-th of the exact answer;
// `outstanding` is the same of rows that stand out (protocol/standing_out.h). The search `chosen` takes the candidates
// that the build measured for a recall of 0.95.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "methods/description.h"
#include "methods/method.h"
#include "methods/recall/searches.h"
#include "methods/rows/owned_rows.h"
#include "protocol/calibration.h"
#include "protocol/part_rows.h"
#include "protocol/standing_out.h"

namespace
{

using namespace pgwarp;
using Clock = std::chrono::steady_clock;

constexpr std::size_t group_size = 20;

enum class Kind { groups, duplicates, random };

struct Options {
    Kind kind = Kind::groups;
    std::size_t rows = 20000;
    std::size_t size = 4000;  // elements of a set
    std::size_t universe = 10000000;
    std::size_t queries = 50;
    std::int64_t hashes = 0;  // 0: the default
    std::uint32_t k = 10;
    std::size_t threads = 1;
    double recall = 0.95;
};

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Draws documents.
class Documents
{
public:
    Documents(const Options& options, std::uint64_t seed) : options_(options), random_(seed) {}

    // Returns a document of a group; its elements are those of the group with a probability that differs by document.
    std::vector<std::uint32_t> draw(std::size_t group)
    {
        std::mt19937_64 of_group(group);
        const double shared = share_of_group();
        std::vector<std::uint64_t> elements;
        for (std::size_t i = 0; i < options_.size; ++i) {
            const std::uint64_t common = element(of_group);
            elements.push_back(uniform(random_) < shared ? common : element(random_));
        }
        std::sort(elements.begin(), elements.end());
        elements.erase(std::unique(elements.begin(), elements.end()), elements.end());
        std::vector<std::uint32_t> words(elements.size() * set_words);
        for (std::size_t i = 0; i < elements.size(); ++i) write_part_number(elements[i], &words[i * set_words]);
        return words;
    }
    void append(std::size_t group, OwnedRows& rows)
    {
        const std::vector<std::uint32_t> words = draw(group);
        const std::uint64_t offsets[2] = {0, words.size()};
        RowView row;
        row.count = 1;
        row.offsets = offsets;
        row.words = words.data();
        rows.append(row);
    }

private:
    double share_of_group()
    {
        if (options_.kind == Kind::random) return 0;
        if (options_.kind == Kind::groups) return 0.2 + 0.75 * uniform(random_);
        return uniform(random_) < 0.4 ? 0.7 + 0.3 * uniform(random_) : 0;
    }
    static double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
    // The r-th most frequent element with a probability of about 1 / r.
    std::uint64_t element(std::mt19937_64& random) const
    {
        return static_cast<std::uint64_t>(std::pow(static_cast<double>(options_.universe), uniform(random)));
    }

    Options options_;
    std::mt19937_64 random_;
};

// The method that searches sets with signatures, and sets without.
const MethodDescription& method_of_sets()
{
    for (const MethodDescription* description : method_descriptions()) {
        if (takes_elements(*description, ElementType::minhash_set)) return *description;
    }
    throw std::runtime_error("no method searches sets by signatures");
}

// An index of the element type over the rows, loaded.
struct Loaded {
    IndexShape shape{};
    std::unique_ptr<Builder> builder;
    std::unique_ptr<Searcher> searcher;
    double build_seconds = 0;
    double load_seconds = 0;
};

Loaded load(ElementType element, const OwnedRows& rows, const ParameterList& options, ThreadPool& pool)
{
    Loaded index;
    index.shape.method = method_of_sets().method;
    index.shape.element = element;
    index.shape.metric = static_cast<std::uint8_t>(Metric::set_jaccard);
    RowBuffer buffer(index.shape);
    std::vector<Tid> tids(rows.count());
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    buffer.append(tids, rows.view());
    const MethodFactory& method = *find_method(index.shape.method);
    index.builder = method.make_builder(index.shape, options);
    const auto built = Clock::now();
    index.builder->run(buffer, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    index.build_seconds = seconds_since(built);
    index.searcher = method.make_searcher(index.shape, index.builder->effective_options(), index.builder->arrays());
    const auto loaded = Clock::now();
    feed_searcher(*index.builder, *index.searcher, pool);
    index.load_seconds = seconds_since(loaded);
    return index;
}

using Results = std::vector<std::vector<RowResult>>;

struct Measured {
    Results results;
    double single_ms = 0;  // the median of single queries
    double batch_ms = 0;   // of a query in a batch of all
};

Measured measure(const Loaded& index, const OwnedRows& queries, std::uint32_t k, std::int64_t effort, ThreadPool& pool)
{
    Measured measured;
    SearchBatch batch;
    batch.k = k;
    batch.effort = effort;
    std::vector<double> times;
    for (std::size_t q = 0; q < queries.count(); ++q) {
        batch.lists = queries.view().row(q);
        batch.count = 1;
        Results one;
        const auto start = Clock::now();
        index.searcher->search(batch, one, pool);
        times.push_back(1e3 * seconds_since(start));
        measured.results.push_back(std::move(one[0]));
    }
    std::sort(times.begin(), times.end());
    measured.single_ms = times[times.size() / 2];
    batch.lists = queries.view();
    batch.count = queries.count();
    Results all;
    const auto start = Clock::now();
    index.searcher->search(batch, all, pool);
    measured.batch_ms = 1e3 * seconds_since(start) / static_cast<double>(queries.count());
    return measured;
}

// The share of the exact answers found; of a query those within its distance.
double recall(const Results& found, const Results& exact, const std::vector<double>& within)
{
    double hits = 0;
    double wanted = 0;
    for (std::size_t q = 0; q < exact.size(); ++q) {
        const auto counted =
            std::ranges::count_if(exact[q], [&](const RowResult& r) { return r.distance <= within[q]; });
        if (counted == 0) continue;
        wanted += static_cast<double>(counted);
        const double last = exact[q][static_cast<std::size_t>(counted) - 1].distance;
        hits += static_cast<double>(
            std::ranges::count_if(found[q], [last](const RowResult& row) { return row.distance <= last; }));
    }
    return wanted > 0 ? hits / wanted : 1;
}

// Returns for each query the distance within which rows stand out, by a sample of the rows.
std::vector<double> standing_out_distances(const Loaded& index, const OwnedRows& rows, const OwnedRows& queries)
{
    constexpr std::size_t most = 2000;
    const RowView sample = rows.view().slice(0, std::min(most, rows.count()));
    const auto functions = static_cast<double>(index.builder->effective_options().get("hashes", 1));
    std::vector<double> result;
    for (std::size_t q = 0; q < queries.count(); ++q) {
        std::vector<double> distances(sample.count);
        index.searcher->compare_rows(queries.view().row(q), sample, distances);
        std::sort(distances.begin(), distances.end());
        const double third = 1 - distances[distances.size() / 4];
        const double first = 1 - distances[distances.size() * 3 / 4];
        result.push_back(1 - standing_out_similarity(first, third, functions));
    }
    return result;
}

struct Report {
    Results exact;
    std::vector<double> everywhere;
    std::vector<double> standing_out;

    void line(const char* what, const Loaded& index, const Measured& measured) const
    {
        std::printf("%s,%.4f,%.4f,%.3f,%.3f,%.2f,%.2f,%.0f\n", what, recall(measured.results, exact, everywhere),
                    recall(measured.results, exact, standing_out), measured.single_ms, measured.batch_ms,
                    index.build_seconds, index.load_seconds, static_cast<double>(index.searcher->memory_bytes()) / 1e6);
        std::fflush(stdout);
    }
};

void run(const Options& options)
{
    ThreadPool pool(options.threads);
    OwnedRows rows;
    OwnedRows queries;
    Documents documents(options, 1);
    const std::size_t of_group = options.kind == Kind::duplicates ? 5 : group_size;
    const std::size_t groups = std::max<std::size_t>(1, options.rows / of_group);
    for (std::size_t i = 0; i < options.rows; ++i) documents.append(i % groups, rows);
    for (std::size_t i = 0; i < options.queries; ++i) documents.append(i * 7 % groups, queries);
    std::printf("search,recall,outstanding,single_ms,batch_ms,build_s,load_s,memory_mb\n");

    const Loaded exact = load(ElementType::set, rows, {}, pool);
    const Measured truth = measure(exact, queries, options.k, 0, pool);
    ParameterList given;
    if (options.hashes > 0) given.set("hashes", options.hashes);
    const Loaded signed_sets = load(ElementType::minhash_set, rows, given, pool);
    const Report report = {truth.results, std::vector<double>(queries.count(), 2),
                           standing_out_distances(signed_sets, rows, queries)};
    report.line("complete", exact, truth);
    const Calibration calibration = signed_sets.builder->calibration();
    const EffortChoice choice = choose_effort(calibration, options.k, options.recall);
    const ParameterList measured = signed_sets.builder->effective_options();
    std::printf("# of %u sampled rows %d have others that stand out, within %.3f; chosen %d candidates (%.3f)\n",
                calibration.sample, static_cast<int>(measured.get(option_standing_out, 0)),
                static_cast<double>(measured.get(option_standing_within, 0)) / 1e6, static_cast<int>(choice.effort),
                static_cast<double>(choice.attained));
    report.line("chosen", signed_sets, measure(signed_sets, queries, options.k, choice.effort, pool));
    for (const std::int64_t candidates : {10, 20, 50, 100, 200, 500, 1000}) {
        char name[32];
        std::snprintf(name, sizeof(name), "candidates %d", static_cast<int>(candidates));
        report.line(name, signed_sets, measure(signed_sets, queries, options.k, candidates, pool));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    const std::map<std::string, Kind> kinds = {
        {"groups", Kind::groups}, {"duplicates", Kind::duplicates}, {"random", Kind::random}};
    CLI::App app{"Searches of sets by signatures beside exact ones"};
    app.add_option("--kind", options.kind, "groups, duplicates or random")->transform(CLI::CheckedTransformer(kinds));
    app.add_option("--rows", options.rows);
    app.add_option("--size", options.size, "elements of a set")->check(CLI::Range(1, 32768));
    app.add_option("--universe", options.universe);
    app.add_option("--queries", options.queries)->check(CLI::Range(1, 100000));
    app.add_option("--hashes", options.hashes, "functions; 0: the default");
    app.add_option("--recall", options.recall);
    app.add_option("-k", options.k);
    app.add_option("--threads", options.threads);
    CLI11_PARSE(app, argc, argv);
    run(options);
    return 0;
}
