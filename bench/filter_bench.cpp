// Measures searches with predicates without a database: queries per second and recall by the share of rows that pass.
//
//   filter_bench --rows 200000 --dimensions 384 --threads 2
//   filter_cuda_bench --rows 10000000 --dimensions 768 --halves --recall .99 --queries 10000 --threads 16
//
// Rows are generated embeddings (generated.h), or those of files: --base base.u8 --query query.u8 --dimensions 128.
// Every query has a predicate of its own, on one of two attributes (filter_rows.h). Recall is that of the first
// queries, by brute force. `single`: one query at a time; `batch`: many at once.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench_device.h"
#include "described.h"
#include "engine/mirror/mirror.h"
#include "engine/search/search.h"
#include "filter_rows.h"
#include "filter_truth.h"
#include "methods/arrays.h"
#include "methods/description.h"
#include "numeric/distance.h"
#include "protocol/calibration.h"
#include "protocol/predicates.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::bench;
using BenchClock = std::chrono::steady_clock;

struct Options {
    FilterSource source{200000, 384, 200, false, "", ""};
    std::size_t judged = 200;
    std::size_t threads = 2;
    std::size_t rounds = 3;
    double budget = 10;
    std::uint32_t k = 10;
    double recall = 0.95;
    std::vector<std::string> places{"anywhere", "own", "other", "near", "far"};
    std::vector<double> shares{1, 0.5, 0.1, 0.01, 0.001};
    std::vector<std::string> indexes{linking_method().name};
    std::vector<std::string> settings{""};
};

// Of ";NAME=NUMBER;NAME=NUMBER".
void add_options(const std::string& text, ParameterList& out)
{
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t equals = text.find('=', at);
        if (text[at] != ';' || equals == std::string::npos) throw std::runtime_error("--set takes ;NAME=NUMBER");
        std::size_t digits = 0;
        out.set(text.substr(at + 1, equals - at - 1).c_str(), std::stoll(text.substr(equals + 1), &digits));
        at = equals + 1 + digits;
    }
}

double seconds_since(BenchClock::time_point start)
{
    return std::chrono::duration<double>(BenchClock::now() - start).count();
}

const BenchClock::time_point begin_of_run = BenchClock::now();

void report(const std::string& what)
{
    std::fprintf(stderr, "%8.1f s  %s\n", seconds_since(begin_of_run), what.c_str());
}

struct LoadedIndex {
    std::string name;
    std::shared_ptr<Mirror> mirror;
    std::int64_t effort = 0;
};

// Copies the rows to a build's buffer, in order.
void give_rows(const FilterRows& data, RowBuffer& rows, ThreadPool& pool)
{
    constexpr std::size_t step = std::size_t{1} << 16;
    constexpr std::size_t piece = 1024;
    std::vector<float> some(std::min(step, data.size()) * data.width());
    for (std::size_t first = 0; first < data.size(); first += step) {
        const std::size_t count = std::min(step, data.size() - first);
        pool.parallel_for(count, piece, [&](std::size_t begin, std::size_t end) {
            data.read(first + begin, end - begin, some.data() + begin * data.width());
        });
        std::vector<Tid> tids(count);
        for (std::size_t i = 0; i < count; ++i) tids[i] = {static_cast<std::uint32_t>(first + i), 1, 0};
        rows.append(tids, std::span<const float>(some.data(), count * data.width()));
    }
}

void copy_array(const Builder& builder, const ArrayShape& array, std::uint32_t number, Mirror& mirror, ThreadPool& pool)
{
    constexpr std::uint64_t piece = std::uint64_t{16} << 20;
    const std::uint64_t bytes = array.bytes();
    pool.parallel_for((bytes + piece - 1) / piece, 1, [&](std::size_t i, std::size_t) {
        const std::uint64_t offset = i * piece;
        std::vector<std::byte> some(std::min(piece, bytes - offset));
        builder.read(array.name, offset, some);
        mirror.write(number, offset, some);
    });
}

IndexShape shape_of(const FilterRows& data, const IndexChoice& choice)
{
    IndexShape shape{};
    shape.method = choice.method->method;
    shape.element = data.are_halves() ? ElementType::float16 : ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = static_cast<std::uint32_t>(data.width());
    return shape;
}

LoadedIndex load(const Options& options, const FilterRows& data, const IndexChoice& choice, ThreadPool& pool)
{
    IndexShape shape = shape_of(data, choice);
    const MethodFactory& method = method_of_device(shape.method);
    const auto builder = method.make_builder(shape, choice.options);
    // The builder reads from the rows until its arrays are read.
    RowBuffer rows(data.width());
    give_rows(data, rows, pool);
    report(choice.text + ": rows copied");
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    report(choice.text + ": built");
    std::vector<ArrayShape> arrays = builder->arrays();
    const std::size_t of_method = arrays.size();
    const std::size_t count = data.size();
    arrays.push_back(make_array_shape(array_tid_block, ArrayType::u32, count, 1));
    arrays.push_back(make_array_shape(array_tid_offset, ArrayType::u16, count, 1));
    arrays.push_back(make_array_shape(array_attributes, ArrayType::u64, count, attribute_columns));
    shape.attribute_count = attribute_columns;
    LoadedIndex index{choice.text, nullptr, 0};
    index.mirror = std::make_shared<Mirror>(MirrorKey{}, shape, builder->effective_options(), count, arrays, method,
                                            measures_gpu());
    std::uint32_t array = 0;
    for (; array < of_method; ++array) copy_array(*builder, arrays[array], array, *index.mirror, pool);
    std::vector<std::uint32_t> blocks(count);
    for (std::uint32_t row = 0; row < count; ++row) blocks[row] = row;
    const std::vector<std::uint16_t> offsets(count, 1);
    index.mirror->write(array++, 0, std::as_bytes(std::span(blocks)));
    index.mirror->write(array++, 0, std::as_bytes(std::span(offsets)));
    index.mirror->write(array, 0, std::as_bytes(std::span(data.attributes())));
    index.mirror->finish_load(pool);
    index.effort = choose_effort(builder->calibration(), options.k, options.recall).effort;
    report(choice.text + ": loaded, effort " + std::to_string(index.effort));
    return index;
}

// The searches of one cell: an index, and queries with predicates.
class Cell
{
public:
    Cell(const Options& options, const FilterRows& data, const LoadedIndex& index, const AskedQueries& asked,
         const std::string& set, ThreadPool& pool)
        : options_(options),
          data_(data),
          index_(index),
          asked_(asked),
          name_(index.name + set),
          pool_(pool),
          judged_(asked.limits.size())
    {
        add_options(set, settings_.parameters);
        settings_.mirror = index.mirror;
        settings_.k = search_width({index.mirror->searcher().result_kind()}, options.k);
        settings_.effort = index.effort;
        settings_.want_places = true;
        for (const auto& words : asked.predicates) predicates_.append(words);
    }

    void measure()
    {
        // Orders of attributes are made by the first search.
        const double seconds = search(0, judged_);
        measure_single();
        const double all = seconds / static_cast<double>(judged_) * static_cast<double>(options_.source.queries);
        const double part = std::min(1.0, options_.budget / std::max(all, 1e-9));
        const auto count = static_cast<std::size_t>(part * static_cast<double>(options_.source.queries));
        measure_batch(std::clamp(count, judged_, options_.source.queries));
    }

private:
    double search(std::size_t first, std::size_t count)
    {
        QueryPredicates own;
        own.append(predicates_, first, count);
        const RowView queries = dense_rows(data_.queries().row(first).data(), count, data_.width());
        const auto start = BenchClock::now();
        run_search(settings_, {queries, &own}, nullptr, pool_, answer_);
        return seconds_since(start);
    }

    void measure_single()
    {
        std::vector<double> times;
        double right = 0;
        std::size_t asked = 0;
        FilterOutcome outcome;
        const auto start = BenchClock::now();
        for (std::size_t round = 0; round < options_.rounds; ++round) {
            for (std::size_t q = 0; q < judged_; ++q) {
                if (seconds_since(start) > options_.budget && times.size() >= 10) break;
                times.push_back(search(q, 1));
                if (round > 0) continue;
                right += count_right(q);
                ++asked;
                outcome.add(filtered_of(answer_, 0, 1));
            }
        }
        std::ranges::sort(times);
        const double p99 = times[times.size() - 1 - times.size() / 100];
        print("single", 1, asked, right, times[times.size() / 2], p99, outcome);
    }

    void measure_batch(std::size_t count)
    {
        double best = HUGE_VAL;
        double right = 0;
        FilterOutcome outcome;
        const auto start = BenchClock::now();
        for (std::size_t round = 0; round < options_.rounds && (round == 0 || seconds_since(start) < options_.budget);
             ++round) {
            best = std::min(best, search(0, count));
            if (round > 0) continue;
            right = count_right(0);
            outcome = filtered_of(answer_, 0, count);
        }
        print("batch", count, std::min(count, judged_), right, best / static_cast<double>(count), best, outcome);
    }

    // Of the answer to the queries from `first` on.
    double count_right(std::size_t first) const
    {
        double right = 0;
        std::size_t at = 0;
        std::vector<float> row(data_.width());
        for (std::size_t q = 0; q < answer_.counts.size(); ++q) {
            std::size_t found = 0;
            for (const std::size_t end = at + answer_.counts[q]; at < end; ++at) {
                const std::size_t place = answer_.places[at];
                if (!passes(predicates_.of(first + q), data_.attributes_of(place)))
                    throw std::runtime_error("a row came back that does not pass");
                if (first + q >= judged_) continue;
                data_.read(place, 1, row.data());
                const float* const query = data_.queries().row(first + q).data();
                found += score(Metric::l2, query, row.data(), data_.width()) <= asked_.limits[first + q] ? 1 : 0;
            }
            right += static_cast<double>(std::min<std::size_t>(found, options_.k)) / options_.k;
        }
        return right;
    }

    void print(const char* way, std::size_t at_once, std::size_t judged, double right, double seconds, double p99,
               const FilterOutcome& outcome) const
    {
        std::printf("%s,%zu,%zu,%s,%g,%s,%zu,%.4f,%.1f,%.0f,%.1f,%d,%lu\n", name_.c_str(), data_.size(), data_.width(),
                    where_names[static_cast<int>(asked_.where)], asked_.share, way, at_once,
                    right / static_cast<double>(judged), seconds * 1e6, 1 / seconds, p99 * 1e6,
                    static_cast<int>(outcome.ways), static_cast<unsigned long>(outcome.passing_rows));
        std::fflush(stdout);
    }

    const Options& options_;
    const FilterRows& data_;
    const LoadedIndex& index_;
    const AskedQueries& asked_;
    std::string name_;
    ThreadPool& pool_;
    std::size_t judged_;
    SearchSettings settings_;
    QueryPredicates predicates_;
    SearchAnswer answer_;
};

// All rows pass wherever they are.
std::vector<AskedQueries> make_queries(const Options& options, const FilterRows& data, ThreadPool& pool)
{
    std::vector<AskedQueries> out;
    for (const double share : options.shares) {
        for (const std::string& place : options.places) {
            if (share >= 1 && place != options.places.front()) continue;
            AskedQueries& asked = out.emplace_back();
            asked.share = share;
            asked.where = where_of(place);
            asked.predicates.resize(options.source.queries);
            pool.parallel_for(options.source.queries, 16, [&](std::size_t begin, std::size_t end) {
                for (std::size_t q = begin; q < end; ++q) asked.predicates[q] = data.predicate(q, share, asked.where);
            });
        }
    }
    return out;
}

void run(const Options& options)
{
    const BenchDevice device;
    ThreadPool pool(options.threads);
    const FilterRows data(options.source, pool);
    report("rows made");
    std::vector<AskedQueries> asked = make_queries(options, data, pool);
    find_limits(data, std::min(options.judged, options.source.queries), options.k, pool, asked);
    report("true answers found");
    std::printf(
        "method,rows,dimensions,where,share,way,queries_at_once,recall,us_a_query,queries_per_second,p99_us,ways,"
        "passing\n");
    for (const std::string& choice : options.indexes) {
        const LoadedIndex index = load(options, data, IndexChoice(choice), pool);
        for (const AskedQueries& queries : asked) {
            for (const std::string& set : options.settings) Cell(options, data, index, queries, set, pool).measure();
        }
        report(choice + ": measured");
    }
}

}  // namespace

int main(int argc, char** argv)
try {
    Options options;
    CLI::App app{"Measures searches with predicates"};
    app.add_option("--rows", options.source.rows);
    app.add_option("--dimensions", options.source.dimensions);
    app.add_option("--queries", options.source.queries, "at once");
    app.add_flag("--halves", options.source.halves, "rows of halfvec");
    app.add_option("--base", options.source.base, "a file of rows: fvecs, bvecs, or u8 of --dimensions bytes a row");
    app.add_option("--query", options.source.query, "a file of queries")->needs("--base");
    app.add_option("--judged", options.judged, "queries that are asked alone, and compared with brute force");
    app.add_option("--rounds", options.rounds, "of which the fastest batch counts")->check(CLI::PositiveNumber);
    app.add_option(
        "--budget", options.budget,
        "seconds of each measurement, after which no round begins; batches that would take longer are smaller");
    app.add_option("--threads", options.threads);
    app.add_option("--k", options.k);
    app.add_option("--recall", options.recall, "asked of the calibration");
    app.add_option("--share", options.shares, "of the rows that pass")->delimiter(',');
    app.add_option("--where", options.places, "anywhere, own, other, near, far")->delimiter(',');
    app.add_option("--set", options.settings, ";NAME=NUMBER of searches; again for other searches");
    app.add_option("--index", options.indexes, "METHOD[,NAME=NUMBER...]; again for more");
    CLI11_PARSE(app, argc, argv);
    run(options);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "filter_bench: %s\n", error.what());
    return 1;
}
