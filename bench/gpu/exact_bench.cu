// Exact search on one device, operands on the device. Prints for each case the median time, the fraction of the
// roofline (790 TFLOP/s of fp16 for batches, 4.5 TB/s for single queries; both measured on an H200), how many queries
// needed more than the first pass, and recall against a scan by canonical distance of every row.
//
// exact_bench [--base file.u8 --dimensions 128 --queries file.fvecs|file.bvecs] [--rows n] [--asked n] [--raw]
//             [--cases l2,dup,l1,one,wide,host,curve,ties] [--repeat n] [--csv file --name name]
// "host": the searcher as the engine calls it, from and to host memory, by the host's clock. "ties": the same where
// more copies of one row are near all queries than proposals have room for. Rows are turned by a fixed orthogonal
// matrix (random signs and Hadamard steps) unless --raw.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "bench_data.h"
#include "device/error.h"
#include "event_timer.h"
#include "exact/exact.h"
#include "methods/arrays.h"

namespace pgwarp::cuda
{
namespace
{

constexpr double matrix_rate = 790e12;
constexpr double memory_rate = 4.5e12;

struct Options {
    std::string base;
    std::string queries;
    std::string cases = "l2,dup,l1,one,wide,host";
    std::string csv;
    std::string name = "generated";
    std::uint32_t dimensions = 128;
    std::uint32_t rows = 1'000'000;
    std::uint32_t asked = 10'000;
    int repeat = 11;
    bool raw = false;
};

Options options_of(const bench::Arguments& given)
{
    Options options;
    options.base = given.text("base", "");
    options.queries = given.text("queries", "");
    options.cases = given.text("cases", options.cases.c_str());
    options.csv = given.text("csv", "");
    options.name = given.text("name", options.name.c_str());
    options.dimensions = static_cast<std::uint32_t>(given.number("dimensions", options.dimensions));
    options.rows = static_cast<std::uint32_t>(given.number("rows", options.rows));
    options.asked = static_cast<std::uint32_t>(given.number("asked", options.asked));
    options.repeat = static_cast<int>(given.number("repeat", static_cast<std::size_t>(options.repeat)));
    options.raw = given.number("raw", 0) != 0;
    return options;
}

struct Matrix {
    std::vector<float> values;
    std::uint32_t dimensions = 0;
    std::uint32_t count() const { return static_cast<std::uint32_t>(values.size() / dimensions); }
};

Matrix read_vectors(const std::string& path, std::uint32_t dimensions, std::uint32_t most)
{
    Matrix matrix{bench::read_vectors(path, dimensions), dimensions};
    matrix.values.resize(std::min<std::size_t>(most, matrix.count()) * dimensions);
    return matrix;
}

std::uint64_t mix(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

// A normally distributed number that depends on (seed, i) alone.
float normal(std::uint64_t seed, std::uint64_t i)
{
    const std::uint64_t bits = mix(seed * 0x9E3779B97F4A7C15ULL + i);
    const double u = (static_cast<double>(bits >> 32) + 0.5) / 4294967296.0;
    const double v = static_cast<double>(bits & 0xFFFFFFFFU) / 4294967296.0;
    return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
}

ThreadPool& threads()
{
    static ThreadPool pool(0);
    return pool;
}

// Variance 1/i in dimension i, half of it between 4,096 clusters.
Matrix generate(std::uint32_t count, std::uint32_t dimensions, std::uint64_t seed)
{
    Matrix matrix;
    matrix.dimensions = dimensions;
    matrix.values.resize(std::size_t{count} * dimensions);
    threads().parallel_for(count, 256, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            const std::uint64_t cluster = mix(seed * 77 + row) % 4096;
            for (std::uint32_t d = 0; d < dimensions; ++d) {
                const float sum = normal(1, cluster * dimensions + d) + normal(seed + 2, row * dimensions + d);
                matrix.values[row * dimensions + d] = sum * std::sqrt(0.5F / static_cast<float>(d + 1));
            }
        }
    });
    return matrix;
}

void hadamard(float* values, std::uint32_t width)
{
    for (std::uint32_t half = 1; half < width; half *= 2) {
        for (std::uint32_t i = 0; i < width; i += 2 * half) {
            for (std::uint32_t j = i; j < i + half; ++j) {
                const float a = values[j];
                const float b = values[j + half];
                values[j] = a + b;
                values[j + half] = a - b;
            }
        }
    }
    const float scale = 1 / std::sqrt(static_cast<float>(width));
    for (std::uint32_t i = 0; i < width; ++i) values[i] *= scale;
}

// A fixed orthogonal matrix: three rounds of random signs and Hadamard steps over the first and the last dimensions.
void rotate(Matrix& matrix)
{
    const std::uint32_t d = matrix.dimensions;
    std::uint32_t width = 1;
    while (width * 2 <= d) width *= 2;
    threads().parallel_for(matrix.count(), 256, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            float* values = matrix.values.data() + row * d;
            for (std::uint64_t round = 0; round < 3; ++round) {
                for (std::uint32_t i = 0; i < d; ++i) {
                    if ((mix(round * 100003 + i) & 1) != 0) values[i] = -values[i];
                }
                hadamard(values, width);
                if (width < d) hadamard(values + d - width, width);
            }
        }
    });
}

struct Device {
    Context context{0, 0};
    Context::Lease stream = context.lease(Priority::search);

    template <class T>
    DeviceArray<T> array(std::size_t count)
    {
        return DeviceArray<T>(context.pool(), count, "bench", stream);
    }
    DeviceArray<float> upload(const std::vector<float>& values)
    {
        auto made = array<float>(values.size());
        check(cudaMemcpyAsync(made.data(), values.data(), made.bytes(), cudaMemcpyHostToDevice, stream), "upload");
        stream.stream().synchronize();
        return made;
    }
    // Median of milliseconds.
    double time(int repeat, const std::function<void()>& work)
    {
        bench::EventTimer timer(stream);
        std::vector<double> times;
        for (int i = 0; i < repeat + 2; ++i) {
            const double elapsed = timer.time(work);
            if (i >= 2) times.push_back(elapsed);
        }
        return bench::median(times);
    }
};

struct Answer {
    Answer(Device& device, std::uint32_t count, std::uint32_t k)
        : values(device.array<double>(std::size_t{count} * k)),
          rows(device.array<std::uint32_t>(std::size_t{count} * k)),
          found(device.array<std::uint32_t>(count)),
          view{values.data(), rows.data(), found.data(), k}
    {
    }
    DeviceArray<double> values;
    DeviceArray<std::uint32_t> rows;
    DeviceArray<std::uint32_t> found;
    ExactAnswer view;
};

// Fraction of rows, of some queries, that are at their place in the scan's answer.
double agreement(Device& device, const ExactRows& rows, const float* queries, std::uint32_t count, const Answer& answer)
{
    const std::uint32_t k = answer.view.k;
    const std::uint32_t sample = std::min(count, 64U);
    Answer scanned(device, count, k);
    auto workspace = device.array<std::byte>(scan_workspace_bytes(rows.rows));
    ScanJob job{rows.metric, rows.vectors, rows.rows, rows.dimensions, nullptr, nullptr, {}, 0, scanned.view};
    std::vector<std::uint32_t> expected(k);
    std::vector<std::uint32_t> actual(k);
    std::size_t same = 0;
    for (std::uint32_t i = 0; i < sample; ++i) {
        job.id = static_cast<std::uint32_t>(std::uint64_t{i} * count / sample);
        job.query = queries + std::size_t{job.id} * rows.dimensions;
        scan_rows(job, workspace.data(), device.stream);
        const std::size_t first = std::size_t{job.id} * k;
        check(cudaMemcpyAsync(expected.data(), scanned.rows.data() + first, k * 4, cudaMemcpyDefault, device.stream),
              "c");
        check(cudaMemcpyAsync(actual.data(), answer.rows.data() + first, k * 4, cudaMemcpyDefault, device.stream), "c");
        device.stream.stream().synchronize();
        for (std::uint32_t j = 0; j < k; ++j) same += expected[j] == actual[j] ? 1 : 0;
    }
    return static_cast<double>(same) / (double{1} * sample * k);
}

void print_row(const char* name, std::uint32_t k, double milliseconds, double floor_seconds,
               const ExactStatistics& statistics, double recall)
{
    std::printf("%-44s k=%-4u %9.3f ms %6.1f %% of roofline  again %6llu scanned %6llu  recall %.6f\n", name, k,
                milliseconds, floor_seconds * 1e5 / milliseconds,
                static_cast<unsigned long long>(statistics.filtered_again),
                static_cast<unsigned long long>(statistics.scanned), recall);
    std::fflush(stdout);
}

struct Measured {
    double milliseconds;
    double recall;
};

Measured search_case(Device& device, const char* name, const ExactRows& rows, const DeviceArray<float>& queries,
                     std::uint32_t count, std::uint32_t k, int repeat)
{
    Answer answer(device, count, k);
    ExactStatistics statistics;
    const double milliseconds = device.time(repeat, [&] {
        statistics = {};
        search_exactly(device.context, rows, queries.data(), count, {}, answer.view, statistics, nullptr,
                       device.stream);
    });
    const double pairs = double{1} * count * rows.rows * rows.dimensions;
    double floor = pairs * 2 / matrix_rate;
    if (rows.metric == Metric::l1) floor = pairs / (132 * 128 * 1.755e9 / 2);  // two instructions an element
    if (count <= 4) floor = double{1} * rows.scored.padded_positions * rows.scored.padded_dimensions * 2 / memory_rate;
    const double recall = agreement(device, rows, queries.data(), count, answer);
    print_row(name, k, milliseconds, floor, statistics, recall);
    return {milliseconds, recall};
}

// One point of a curve: batches of all queries and single ones, as lines of a CSV file.
void curve_case(Device& device, const Options& options, const ExactRows& rows, const DeviceArray<float>& queries,
                std::uint32_t asked)
{
    std::ofstream csv;
    if (!options.csv.empty()) csv.open(options.csv, std::ios::app);
    for (const std::uint32_t count : {1U, 16U, asked}) {
        const std::string name = "l2, queries: " + std::to_string(count);
        const auto [milliseconds, recall] = search_case(device, name.c_str(), rows, queries, count, 10, options.repeat);
        if (!csv.is_open()) continue;
        csv << options.name << ',' << rows.rows << ',' << rows.dimensions << ",exact,," << count << ",10," << recall
            << ',' << milliseconds << ',' << count / milliseconds * 1e3 << ',' << std::endl;
    }
}

// Prepared queries and thresholds, to time proposers alone.
struct Prepared {
    Prepared(Device& device, const ExactRows& rows, const float* from, std::uint32_t count)
        : padded(round_up(count, tile_queries)),
          halves(device.array<__half>(std::size_t{padded} * rows.scored.padded_dimensions)),
          floats(device.array<const float*>(padded)),
          factors(device.array<float>(padded)),
          bounds(device.array<QueryBound>(padded)),
          usable(device.array<std::uint32_t>(padded)),
          thresholds(device.array<float>(padded)),
          counts(device.array<std::uint32_t>(padded)),
          entries(device.array<Proposal>(std::size_t{padded} * 512))
    {
        job.rows = &rows.scored;
        job.penalties = rows.scored.penalties.data();
        job.vectors = rows.vectors;
        job.queries = {count, padded, halves.data(), floats.data(), factors.data(), bounds.data(), usable.data()};
        prepare_queries(rows.scored, from, nullptr, 0, job.queries, device.stream);
        std::vector<float> none(padded, INFINITY);
        check(cudaMemcpyAsync(thresholds.data(), none.data(), padded * 4, cudaMemcpyDefault, device.stream), "copy");
        device.stream.stream().synchronize();
        job.out = {entries.data(), counts.data(), thresholds.data(), 512, nullptr, 0};
        job.range = {0, rows.scored.padded_positions};
    }
    std::uint32_t padded;
    DeviceArray<__half> halves;
    DeviceArray<const float*> floats;
    DeviceArray<float> factors;
    DeviceArray<QueryBound> bounds;
    DeviceArray<std::uint32_t> usable;
    DeviceArray<float> thresholds;
    DeviceArray<std::uint32_t> counts;
    DeviceArray<Proposal> entries;
    ProposalJob job;
};

void kernel_case(Device& device, const char* name, const ExactRows& rows, const DeviceArray<float>& queries,
                 std::uint32_t count, int repeat)
{
    Prepared prepared(device, rows, queries.data(), count);
    const double milliseconds = device.time(repeat, [&] { propose(device.context, prepared.job, device.stream); });
    const bool half = rows.scored.halves.size() > 0;
    const double pairs = double{1} * count * rows.rows * rows.dimensions;
    const double bytes = double{1} * rows.rows * (half ? rows.scored.padded_dimensions * 2 : rows.dimensions * 4);
    print_row(name, 0, milliseconds, std::max(bytes / memory_rate, half ? pairs * 2 / matrix_rate : 0), {}, NAN);
}

Matrix near_duplicates(const Matrix& base, std::uint32_t count, std::uint64_t seed)
{
    Matrix matrix{std::vector<float>(std::size_t{count} * base.dimensions), base.dimensions};
    const std::uint32_t originals = std::max(1U, base.count() / 1000);
    double square = 0;
    for (std::size_t i = 0; i < 100'000 && i < base.values.size(); ++i) square += base.values[i] * base.values[i];
    const auto noise = static_cast<float>(1e-5 * std::sqrt(square / 1e5));
    threads().parallel_for(count, 256, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin * base.dimensions; i < end * base.dimensions; ++i) {
            const std::size_t original = i / base.dimensions % originals;
            matrix.values[i] = base.values[original * base.dimensions + i % base.dimensions] + noise * normal(seed, i);
        }
    });
    return matrix;
}

ExactRows float_rows(Device& device, const ExactRows& like)
{
    ExactRows rows;
    rows.metric = like.metric;
    rows.vectors = like.vectors;
    rows.rows = like.rows;
    rows.dimensions = like.dimensions;
    rows.scored = make_scored_rows(device.context.pool(), like.metric, ScoreKind::float_l2, like.vectors, like.rows,
                                   like.dimensions, device.stream);
    return rows;
}

std::unique_ptr<Searcher> load(Context& context, Metric metric, const Matrix& base)
{
    IndexShape shape{};
    shape.method = Method::exact;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = base.dimensions;
    const ArrayShape array = make_array_shape("vectors", ArrayType::f32, base.count(), base.dimensions);
    auto searcher = make_exact_searcher(context, shape, {&array, 1});
    searcher->write("vectors", 0, std::as_bytes(std::span(base.values)));
    searcher->finish_load(threads());
    return searcher;
}

// Searches one after the other, each with the next of the queries.
void host_case(const Searcher& searcher, const Matrix& asked, std::uint32_t count, std::uint32_t k, int repeat)
{
    std::vector<double> times;
    std::vector<std::vector<RowResult>> results;
    const ExactStatistics before = exact_statistics(searcher);
    for (int i = 0; i < repeat + 3; ++i) {
        const std::size_t first = std::size_t{static_cast<unsigned>(i)} * count % (asked.count() - count + 1);
        SearchBatch batch;
        batch.queries =
            std::span(asked.values).subspan(first * asked.dimensions, std::size_t{count} * asked.dimensions);
        batch.count = count;
        batch.k = k;
        const auto start = std::chrono::steady_clock::now();
        searcher.search(batch, results, threads());
        const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
        if (i >= 3) times.push_back(elapsed.count());
    }
    std::sort(times.begin(), times.end());
    const ExactStatistics after = exact_statistics(searcher);
    std::printf(
        "host to host, %5u queries, k=%-5u median %9.4f ms, p99 %9.4f, longest %9.4f; again %llu tied %llu scanned "
        "%llu\n",
        count, k, times[times.size() / 2], times[times.size() * 99 / 100], times.back(),
        static_cast<unsigned long long>(after.filtered_again - before.filtered_again),
        static_cast<unsigned long long>(after.tied - before.tied),
        static_cast<unsigned long long>(after.scanned - before.scanned));
    std::fflush(stdout);
}

void host_cases(Context& context, Metric metric, const Matrix& base, const Matrix& asked, int repeat)
{
    const auto searcher = load(context, metric, base);
    for (const std::uint32_t count : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
        host_case(*searcher, asked, std::min(count, asked.count()), 10, count == 1 ? 300 * repeat : 30 * repeat);
    }
    host_case(*searcher, asked, 1, 100, 30 * repeat);
    host_case(*searcher, asked, asked.count(), 10, repeat);
    host_case(*searcher, asked, asked.count(), 100, repeat);
    host_case(*searcher, asked, std::min(1000U, asked.count()), 1000, 3);
    host_case(*searcher, asked, std::min(100U, asked.count()), 10000, 3);
}

// Queries equal to a row with many copies, and others.
void ties_cases(Context& context, Matrix base, Matrix asked)
{
    for (const std::uint32_t copies : {5000U, 20000U}) {
        for (std::uint32_t i = 1; i < std::min(copies, base.count() / 3); ++i) {
            std::copy_n(base.values.begin(), base.dimensions,
                        base.values.begin() + std::size_t{i} * 3 * base.dimensions);
        }
        std::printf("%u rows, %u of them copies of one, which all queries ask for\n", base.count(), copies);
        for (std::uint32_t q = 0; q < asked.count(); ++q) {
            std::copy_n(base.values.begin(), base.dimensions, asked.values.begin() + std::size_t{q} * base.dimensions);
        }
        const auto searcher = load(context, Metric::l2, base);
        for (const std::uint32_t count : {1U, 64U, 1000U}) {
            host_case(*searcher, asked, std::min(count, asked.count()), 10, 10);
        }
    }
}

void run(const bench::Arguments& arguments)
{
    const Options options = options_of(arguments);
    Device device;
    const auto wanted = [&](const char* name) {
        return ("," + options.cases + ",").find("," + std::string(name) + ",") != std::string::npos;
    };
    const auto made = [&](const DeviceArray<float>& base, Metric metric, std::uint32_t dimensions) {
        return make_exact_rows(device.context.pool(), metric, base.data(),
                               static_cast<std::uint32_t>(base.size() / dimensions), dimensions, device.stream);
    };
    std::printf("%s\n", device.context.name().c_str());
    const bool any = wanted("l2") || wanted("one") || wanted("l1") || wanted("dup") || wanted("host") ||
                     wanted("curve") || wanted("ties");
    if (any) {
        Matrix base = options.base.empty() ? generate(options.rows, options.dimensions, 10)
                                           : read_vectors(options.base, options.dimensions, options.rows);
        Matrix asked = options.queries.empty() ? generate(options.asked, options.dimensions, 11)
                                               : read_vectors(options.queries, options.dimensions, options.asked);
        if (!options.raw) {
            rotate(base);
            rotate(asked);
        }
        const auto rows = device.upload(base.values);
        const auto queries = device.upload(asked.values);
        const std::uint32_t d = options.dimensions;
        if (wanted("l2")) {
            const ExactRows exact = made(rows, Metric::l2, d);
            kernel_case(device, "tile kernel alone, nothing passes", exact, queries, asked.count(), options.repeat);
            for (const std::uint32_t k : {10U, 100U})
                search_case(device, "l2", exact, queries, asked.count(), k, options.repeat);
            for (const std::uint32_t few : {8U, 64U, 256U, 1024U}) {
                kernel_case(device, ("tile kernel, queries: " + std::to_string(few)).c_str(), exact, queries, few,
                            options.repeat);
                search_case(device, ("l2, queries: " + std::to_string(few)).c_str(), exact, queries, few, 10,
                            options.repeat);
            }
            const ExactRows dot = made(rows, Metric::inner_product, d);
            search_case(device, "inner product", dot, queries, asked.count(), 10, options.repeat);
        }
        if (wanted("one")) {
            const ExactRows exact = made(rows, Metric::l2, d);
            const ExactRows floats = float_rows(device, exact);
            for (const std::uint32_t few : {1U, 4U}) {
                kernel_case(device, ("fp16 rows, kernel, queries: " + std::to_string(few)).c_str(), exact, queries, few,
                            options.repeat);
                kernel_case(device, ("fp32 rows, kernel, queries: " + std::to_string(few)).c_str(), floats, queries,
                            few, options.repeat);
            }
            search_case(device, "l2, one query, whole search", exact, queries, 1, 10, options.repeat);
        }
        if (wanted("curve")) {
            curve_case(device, options, made(rows, Metric::l2, d), queries, asked.count());
        }
        if (wanted("ties")) ties_cases(device.context, base, asked);
        if (wanted("host")) host_cases(device.context, Metric::l2, base, asked, options.repeat);
        if (wanted("dup")) {
            const Matrix twins = near_duplicates(base, base.count(), 21);
            const Matrix asked_twins = near_duplicates(base, options.asked, 22);
            const auto twin_rows = device.upload(twins.values);
            const auto twin_queries = device.upload(asked_twins.values);
            search_case(device, "l2, 1,000 near-duplicates each", made(twin_rows, Metric::l2, d), twin_queries,
                        asked_twins.count(), 10, 3);
        }
        if (wanted("l1")) {
            search_case(device, "l1", made(rows, Metric::l1, d), queries, asked.count(), 10, 3);
        }
    }
    if (wanted("wide")) {
        Matrix base = generate(options.rows, 1536, 30);
        Matrix asked = generate(options.asked, 1536, 31);
        rotate(base);
        rotate(asked);
        const auto rows = device.upload(base.values);
        const auto queries = device.upload(asked.values);
        const ExactRows exact = made(rows, Metric::l2, 1536);
        kernel_case(device, "tile kernel alone, 1,536 dimensions", exact, queries, asked.count(), 3);
        search_case(device, "l2, 1,536 dimensions", exact, queries, asked.count(), 10, 3);
    }
}

}  // namespace
}  // namespace pgwarp::cuda

int main(int count, char** values)
{
    return pgwarp::bench::run_benchmark(count, values, pgwarp::cuda::run);
}
