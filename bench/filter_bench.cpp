// Measures searches with predicates without a database: queries per second and recall by the share of rows that pass.
//
//   filter_bench --rows 200000 --dimensions 384 --threads 2
//
// Rows are generated embeddings (generated.h), or those of files: --base base.u8 --query query.u8 --dimensions 128.
// Predicates are ranges of one of two attributes, each with as many rows
// for each code: a number that has nothing to do with the vector (`anywhere`), or the place of the row in an order of
// regions
// (`near`: the regions nearest to the query; `far`: the farthest). Every query has a predicate of its own. Recall is by
// brute force. `single`: one query at a time; `batch`: all at once.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench_device.h"
#include "described.h"
#include "engine/mirror/mirror.h"
#include "engine/search/search.h"
#include "generated.h"
#include "matrix.h"
#include "methods/arrays.h"
#include "methods/description.h"
#include "numeric/distance.h"
#include "protocol/calibration.h"
#include "protocol/predicates.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::bench;

constexpr std::size_t regions = 1000;
constexpr std::uint32_t columns = 2;

struct Options {
    std::size_t rows = 200000;
    std::size_t dimensions = 384;
    std::size_t queries = 200;
    std::size_t judged = 200;
    std::size_t threads = 2;
    std::size_t rounds = 3;
    std::uint32_t k = 10;
    double recall = 0.95;
    std::string base;  // empty: rows are generated
    std::string query;
    std::vector<std::string> places{"anywhere", "near", "far"};
    std::vector<double> shares{1, 0.5, 0.1, 0.01, 0.001};
    std::vector<std::string> indexes{linking_method().name};  // METHOD[,NAME=NUMBER...]
};

enum class Where { anywhere, near, far };
constexpr const char* where_names[] = {"anywhere", "near", "far"};

Where where_of(const std::string& name)
{
    const auto* const found = std::find(std::begin(where_names), std::end(where_names), name);
    if (found == std::end(where_names)) throw std::runtime_error("--where: anywhere, near or far");
    return static_cast<Where>(found - std::begin(where_names));
}

struct Data {
    std::vector<float> rows;
    std::vector<float> queries;
    std::vector<std::uint64_t> attributes;  // [rows][columns]
    std::vector<float> pivots;              // one row of each region
    std::vector<std::size_t> region_rows;   // rows of each region
};

Generated make_rows(const Options& options)
{
    if (options.base.empty()) return generate_embeddings(options.rows, options.dimensions, options.queries);
    Generated read{read_vectors(options.base, options.rows, options.dimensions),
                   read_vectors(options.query, options.queries, options.dimensions)};
    if (read.base.columns != options.dimensions || read.queries.columns != options.dimensions)
        throw std::runtime_error("--dimensions: the files have " + std::to_string(read.base.columns));
    if (read.base.rows < options.rows || read.queries.rows < options.queries)
        throw std::runtime_error("the files have fewer than --rows or --queries");
    return read;
}

// A region is the rows nearest to one of some rows.
Data make_data(const Options& options, ThreadPool& pool)
{
    Generated made = make_rows(options);
    Data data{std::move(made.base.values), std::move(made.queries.values), {}, {}, {}};
    const std::size_t width = options.dimensions;
    for (std::size_t i = 0; i < regions; ++i) {
        const float* pivot = data.rows.data() + i * (options.rows / regions) * width;
        data.pivots.insert(data.pivots.end(), pivot, pivot + width);
    }
    data.attributes.resize(options.rows * columns);
    std::mt19937_64 random(3);
    for (std::size_t row = 0; row < options.rows; ++row) data.attributes[row * columns] = random() % regions;
    pool.parallel_for(options.rows, 256, [&](std::size_t begin, std::size_t end) {
        std::vector<float> distances(regions);
        for (std::size_t row = begin; row < end; ++row) {
            scores(Metric::l2, data.rows.data() + row * width, data.pivots.data(), regions, width, distances.data());
            const auto nearest = std::min_element(distances.begin(), distances.end());
            data.attributes[row * columns + 1] = static_cast<std::uint64_t>(nearest - distances.begin());
        }
    });
    data.region_rows.resize(regions);
    for (std::size_t row = 0; row < options.rows; ++row) ++data.region_rows[data.attributes[row * columns + 1]];
    return data;
}

// A predicate that about this share of the rows pass.
std::vector<std::uint64_t> make_predicate(const Data& data, const Options& options, std::size_t q, double share,
                                          Where where)
{
    const auto wanted = std::max<std::uint64_t>(static_cast<std::uint64_t>(share * regions), 1);
    if (where == Where::anywhere) {
        const std::uint64_t first = q * 37 % (regions - wanted + 1);
        return {1, std::uint64_t{1} << 32, first, first + wanted - 1};
    }
    std::vector<float> distances(regions);
    scores(Metric::l2, data.queries.data() + q * options.dimensions, data.pivots.data(), regions, options.dimensions,
           distances.data());
    std::vector<std::uint64_t> order(regions);
    for (std::size_t i = 0; i < regions; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
        return where == Where::near ? distances[a] < distances[b] : distances[a] > distances[b];
    });
    std::vector<std::uint64_t> chosen;
    std::size_t rows = 0;
    for (std::size_t i = 0; i < regions && static_cast<double>(rows) < share * static_cast<double>(options.rows); ++i) {
        chosen.push_back(order[i]);
        rows += data.region_rows[order[i]];
    }
    std::sort(chosen.begin(), chosen.end());
    std::vector<std::uint64_t> words{1, 0};
    for (const std::uint64_t code : chosen) {
        if (words.size() > 2 && words.back() + 1 == code) {
            words.back() = code;
        } else {
            words.insert(words.end(), {code, code});
        }
    }
    words[1] = 1 | std::uint64_t{(words.size() - 2) / 2} << 32;
    return words;
}

struct LoadedIndex {
    std::string name;
    std::shared_ptr<Mirror> mirror;
    std::int64_t effort = 0;
};

LoadedIndex load(const Options& options, const Data& data, const IndexChoice& choice, ThreadPool& pool)
{
    IndexShape shape{};
    shape.method = choice.method->method;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = static_cast<std::uint32_t>(options.dimensions);
    const MethodFactory& method = method_of_device(shape.method);
    const auto builder = method.make_builder(shape, choice.options);
    std::vector<std::uint32_t> blocks(options.rows);
    std::vector<std::uint16_t> offsets(options.rows, 1);
    // The builder reads from the rows until its arrays are read.
    RowBuffer rows(options.dimensions);
    std::vector<Tid> tids(options.rows);
    for (std::uint32_t row = 0; row < options.rows; ++row) {
        tids[row] = {row, 1, 0};
        blocks[row] = row;
    }
    rows.append(tids, data.rows);
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    std::vector<ArrayShape> arrays = builder->arrays();
    const std::size_t of_method = arrays.size();
    arrays.push_back(make_array_shape(array_tid_block, ArrayType::u32, options.rows, 1));
    arrays.push_back(make_array_shape(array_tid_offset, ArrayType::u16, options.rows, 1));
    arrays.push_back(make_array_shape(array_attributes, ArrayType::u64, options.rows, columns));
    shape.attribute_count = columns;
    LoadedIndex index{choice.method->name, nullptr, 0};
    index.mirror = std::make_shared<Mirror>(MirrorKey{}, shape, builder->effective_options(), options.rows, arrays,
                                            method, measures_gpu());
    std::vector<std::byte> bytes;
    std::uint32_t array = 0;
    for (; array < of_method; ++array) {
        bytes.resize(arrays[array].bytes());
        builder->read(arrays[array].name, 0, bytes);
        index.mirror->write(array, 0, bytes);
    }
    index.mirror->write(array++, 0, std::as_bytes(std::span(blocks)));
    index.mirror->write(array++, 0, std::as_bytes(std::span(offsets)));
    index.mirror->write(array, 0, std::as_bytes(std::span(data.attributes)));
    index.mirror->finish_load(pool);
    index.effort = choose_effort(builder->calibration(), options.k, options.recall).effort;
    return index;
}

// Distances of the k-th nearest rows that pass.
std::vector<double> find_limits(const Options& options, const Data& data, const QueryPredicates& predicates,
                                ThreadPool& pool)
{
    std::vector<double> limits(std::min(options.judged, options.queries));
    pool.parallel_for(limits.size(), 1, [&](std::size_t q, std::size_t) {
        std::vector<float> distances;
        for (std::size_t row = 0; row < options.rows; ++row) {
            if (!passes(predicates.of(q), data.attributes.data() + row * columns)) continue;
            distances.push_back(score(Metric::l2, data.queries.data() + q * options.dimensions,
                                      data.rows.data() + row * options.dimensions, options.dimensions));
        }
        if (distances.empty()) return;
        const std::size_t last = std::min<std::size_t>(options.k, distances.size()) - 1;
        std::nth_element(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(last), distances.end());
        limits[q] = distances[last] * (1 + 1e-5);
    });
    return limits;
}

double count_right(const Options& options, const Data& data, const SearchAnswer& answer, std::size_t first,
                   const std::vector<double>& limits)
{
    double right = 0;
    std::size_t at = 0;
    for (std::size_t q = 0; q < answer.counts.size() && first + q < limits.size(); ++q) {
        std::size_t found = 0;
        for (const std::size_t end = at + answer.counts[q]; at < end; ++at) {
            const float* row = data.rows.data() + answer.places[at] * options.dimensions;
            const float* query = data.queries.data() + (first + q) * options.dimensions;
            found += score(Metric::l2, query, row, options.dimensions) <= limits[first + q] ? 1 : 0;
        }
        right += static_cast<double>(std::min<std::size_t>(found, options.k)) / options.k;
    }
    return right;
}

void measure(const Options& options, const Data& data, const LoadedIndex& index, double share, Where where,
             ThreadPool& pool)
{
    QueryPredicates predicates;
    std::vector<std::vector<std::uint64_t>> made(options.queries);
    pool.parallel_for(options.queries, 16, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) made[q] = make_predicate(data, options, q, share, where);
    });
    for (const auto& words : made) predicates.append(words);
    const std::vector<double> limits = find_limits(options, data, predicates, pool);
    SearchSettings settings;
    settings.mirror = index.mirror;
    settings.k = search_width({index.mirror->searcher().result_kind()}, options.k);
    settings.effort = index.effort;
    settings.want_places = true;
    const std::size_t width = options.dimensions;
    SearchAnswer answer;
    for (const bool single : {true, false}) {
        const std::size_t asked = single ? limits.size() : options.queries;
        double best = HUGE_VAL;
        double right = 0;
        FilterOutcome outcome;
        for (std::size_t round = 0; round < options.rounds; ++round) {
            right = 0;
            double seconds = 0;
            const std::size_t step = single ? 1 : options.queries;
            for (std::size_t q = 0; q < asked; q += step) {
                QueryPredicates own;
                own.append(predicates, q, step);
                const RowView queries = dense_rows(data.queries.data() + q * width, step, width);
                const auto start = std::chrono::steady_clock::now();
                run_search(settings, {queries, &own}, nullptr, pool, answer);
                seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
                right += count_right(options, data, answer, q, limits);
                outcome.add(filtered_of(answer, 0, step));
            }
            best = std::min(best, seconds);
        }
        const auto count = static_cast<double>(asked);
        std::printf("%s,%zu,%zu,%s,%g,%s,%.4f,%.1f,%.0f,%d,%lu\n", index.name.c_str(), options.rows, width,
                    where_names[static_cast<int>(where)], share, single ? "single" : "batch",
                    right / static_cast<double>(limits.size()), best / count * 1e6, count / best,
                    static_cast<int>(outcome.ways), static_cast<unsigned long>(outcome.passing_rows));
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv)
try {
    Options options;
    CLI::App app{"Measures searches with predicates"};
    app.add_option("--rows", options.rows);
    app.add_option("--dimensions", options.dimensions);
    app.add_option("--queries", options.queries);
    app.add_option("--judged", options.judged, "queries whose answers are compared with those of brute force");
    app.add_option("--rounds", options.rounds, "of which the fastest counts")->check(CLI::PositiveNumber);
    app.add_option("--threads", options.threads);
    app.add_option("--k", options.k);
    app.add_option("--recall", options.recall, "asked of the calibration");
    app.add_option("--share", options.shares, "of the rows that pass");
    app.add_option("--where", options.places, "anywhere, near, far");
    app.add_option("--base", options.base, "a file of rows: fvecs, bvecs, or u8 of --dimensions bytes a row");
    app.add_option("--query", options.query, "a file of queries")->needs("--base");
    app.add_option("--index", options.indexes, "METHOD[,NAME=NUMBER...]");
    CLI11_PARSE(app, argc, argv);
    const BenchDevice device;
    ThreadPool pool(options.threads);
    const Data data = make_data(options, pool);
    std::printf(
        "method,rows,dimensions,where,share,queries_at_once,recall,us_a_query,queries_per_second,ways,passing\n");
    for (const std::string& choice : options.indexes) {
        const LoadedIndex index = load(options, data, IndexChoice(choice), pool);
        for (const double share : options.shares)
            for (const std::string& place : options.places) measure(options, data, index, share, where_of(place), pool);
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "filter_bench: %s\n", error.what());
    return 1;
}
