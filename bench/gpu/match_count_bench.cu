// Times match counts of LSH signatures: E2LSH functions of real or generated vectors (GENIE, section 5 and appendix H),
// counted by posting lists and by the dense form. See usage() for the options.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <stdexcept>

#include "bench_data.h"
#include "count_priority_queue.h"
#include "device_arrays.h"
#include "event_timer.h"
#include "harness.h"
#include "matchcount/dense_count.h"
#include "matchcount/dense_tiles.h"
#include "matchcount/match_count.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::cuda;
using namespace pgwarp::cuda::matchcount;
using bench::Arguments;
using bench::received;
using bench::sent;

constexpr char usage[] =
    "match_count_bench --base FILE --queries FILE [--truth FILE] [options]    (bytes alone, bvecs; int32, ivecs)\n"
    "  Functions are floor((a.x + b) / w) mod buckets; a is normal (seed 1), b uniform in [0, w).\n"
    "  --dimensions 128 --rows N --functions 237 --buckets 67 --width .132 (w in standard deviations of a.x)\n"
    "  --batch 1024 --k 100 --repeat 9 --checked 4 (queries whose answers are compared with the CPU)\n"
    "  --cases lists,postings,cpq,dense,tiles   truth: 100 exact neighbours of each query\n";

constexpr std::size_t true_neighbours = 100;  // of each query, in the file of the truth

// The records of a file without their heads (bvecs, ivecs: an int32 each), or of one that has none.
std::vector<std::uint8_t> read_records(const std::string& path, std::size_t record)
{
    std::vector<std::uint8_t> bytes = bench::read_file(path);
    if (!path.ends_with("vecs")) return bytes;
    const std::size_t count = bytes.size() / (record + 4);
    for (std::size_t i = 0; i < count; ++i)
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * (record + 4) + 4), record,
                    bytes.begin() + static_cast<std::ptrdiff_t>(i * record));
    bytes.resize(count * record);
    return bytes;
}

struct Functions {
    std::uint32_t count;
    std::uint32_t buckets;
    std::uint32_t dimensions;
    const float* a;  // [dimensions][count]
    const float* b;  // [count], in units of w
    float inverse_width;
};

// Returns a.x.
__device__ float projection(const std::uint8_t* row, const Functions& functions, std::uint32_t f)
{
    float sum = 0;
    for (std::uint32_t d = 0; d < functions.dimensions; ++d)
        sum += functions.a[d * functions.count + f] * static_cast<float>(row[d]);
    return sum;
}

__global__ void projections_kernel(const std::uint8_t* rows, Functions functions, float* out)
{
    for (std::uint32_t f = threadIdx.x; f < functions.count; f += blockDim.x)
        out[std::size_t{blockIdx.x} * functions.count + f] =
            projection(rows + std::size_t{blockIdx.x} * functions.dimensions, functions, f);
}

__global__ void signatures_kernel(const std::uint8_t* rows, Functions functions, std::uint8_t* out)
{
    const auto buckets = static_cast<int>(functions.buckets);
    for (std::uint32_t f = threadIdx.x; f < functions.count; f += blockDim.x) {
        const float x = projection(rows + std::size_t{blockIdx.x} * functions.dimensions, functions, f);
        const auto h = static_cast<int>(floorf(x * functions.inverse_width + functions.b[f]));
        out[std::size_t{blockIdx.x} * functions.count + f] =
            static_cast<std::uint8_t>((h % buckets + buckets) % buckets);
    }
}

__global__ void keywords_kernel(const std::uint8_t* signatures, std::uint64_t count, std::uint32_t functions,
                                std::uint32_t buckets, std::uint32_t* keywords)
{
    const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count) keywords[i] = static_cast<std::uint32_t>(i % functions) * buckets + signatures[i];
}

// Vectors of bytes, and their signatures on both sides.
struct Signatures {
    std::uint32_t rows = 0;
    std::vector<std::uint8_t> host;  // [rows][functions]
    DeviceArray<std::uint8_t> device;
};

class Hashing
{
public:
    Hashing(const Arguments& arguments, Context& context, cudaStream_t stream)
        : context_(context), stream_(stream), width_(std::stod(arguments.text("width", ".132")))
    {
        functions_.count = static_cast<std::uint32_t>(arguments.number("functions", 237));
        functions_.buckets = static_cast<std::uint32_t>(arguments.number("buckets", 67));
        functions_.dimensions = static_cast<std::uint32_t>(arguments.number("dimensions", 128));
        std::mt19937_64 random(1);
        std::normal_distribution<float> normal;
        std::uniform_real_distribution<float> uniform(0, 1);
        std::vector<float> a(std::size_t{functions_.dimensions} * functions_.count);
        std::vector<float> b(functions_.count);
        for (float& value : a) value = normal(random);
        for (float& value : b) value = uniform(random);
        a_ = sent(a, context, stream);
        b_ = sent(b, context, stream);
        functions_.a = a_.data();
        functions_.b = b_.data();
    }

    const Functions& functions() const { return functions_; }

    // Sets w by the standard deviation of a.x within functions, over the first rows.
    void measure_width(const std::vector<std::uint8_t>& base)
    {
        const std::size_t rows = std::min<std::size_t>(base.size() / functions_.dimensions, 20000);
        const std::vector<std::uint8_t> some(base.begin(), base.begin() + rows * functions_.dimensions);
        const auto device = sent(some, context_, stream_);
        DeviceArray<float> out(context_.pool(), rows * functions_.count, "bench", stream_);
        projections_kernel<<<static_cast<unsigned>(rows), 256, 0, stream_>>>(device.data(), functions_, out.data());
        check_launch("projections");
        const std::vector<float> values = received(out, stream_);
        double variance = 0;
        for (std::uint32_t f = 0; f < functions_.count; ++f) {
            double sum = 0;
            double squares = 0;
            for (std::size_t i = f; i < values.size(); i += functions_.count) {
                sum += values[i];
                squares += static_cast<double>(values[i]) * values[i];
            }
            variance += (squares - sum * sum / static_cast<double>(rows)) / static_cast<double>(rows);
        }
        const double deviation = std::sqrt(variance / functions_.count);
        functions_.inverse_width = static_cast<float>(1 / (width_ * deviation));
        std::printf("a.x has a standard deviation of %.1f; w = %.2f\n", deviation, width_ * deviation);
    }

    Signatures sign(const std::vector<std::uint8_t>& vectors)
    {
        Signatures signatures;
        signatures.rows = static_cast<std::uint32_t>(vectors.size() / functions_.dimensions);
        const auto device = sent(vectors, context_, stream_);
        signatures.device = DeviceArray<std::uint8_t>(context_.pool(), std::size_t{signatures.rows} * functions_.count,
                                                      "bench", stream_);
        signatures_kernel<<<signatures.rows, 256, 0, stream_>>>(device.data(), functions_, signatures.device.data());
        check_launch("signatures");
        signatures.host = received(signatures.device, stream_);
        return signatures;
    }

private:
    Context& context_;
    cudaStream_t stream_;
    double width_;
    Functions functions_{};
    DeviceArray<float> a_;
    DeviceArray<float> b_;
};

struct Answers {
    std::vector<std::uint32_t> rows;
    std::vector<std::uint32_t> counts;
    std::vector<std::uint32_t> found;
};

class Bench
{
public:
    explicit Bench(const Arguments& arguments)
        : arguments_(arguments),
          context_(0, 0),
          lease_(context_.lease(Priority::build)),
          stream_(lease_),
          timer_(stream_),
          hashing_(arguments, context_, stream_),
          k_(static_cast<std::uint32_t>(arguments.number("k", 100)))
    {
        const std::size_t dimensions = hashing_.functions().dimensions;
        base_ = read_records(arguments.text("base", ""), dimensions);
        base_.resize(std::min(base_.size(), arguments.number("rows", SIZE_MAX / dimensions) * dimensions));
        queries_ = read_records(arguments.text("queries", ""), dimensions);
        queries_.resize(std::min(queries_.size(), arguments.number("batch", 1024) * dimensions));
        hashing_.measure_width(base_);
        rows_ = hashing_.sign(base_);
        asked_ = hashing_.sign(queries_);
        std::printf("%s: %u rows of %u functions of %u buckets, %u queries, k = %u\n", context_.name().c_str(),
                    rows_.rows, hashing_.functions().count, hashing_.functions().buckets, asked_.rows, k_);
        const std::size_t results = std::size_t{asked_.rows} * k_;
        out_rows_ = DeviceArray<std::uint32_t>(context_.pool(), results, "bench", stream_);
        out_counts_ = DeviceArray<std::uint32_t>(context_.pool(), results, "bench", stream_);
        out_found_ = DeviceArray<std::uint32_t>(context_.pool(), asked_.rows, "bench", stream_);
    }

    void run()
    {
        const std::vector<std::string> cases = arguments_.texts("cases", "lists,postings,cpq,dense,tiles");
        const auto wants = [&](const char* name) { return std::find(cases.begin(), cases.end(), name) != cases.end(); };
        count_on_cpu();
        if (wants("lists") || wants("postings") || wants("cpq")) make_lists();
        if (wants("postings")) count_postings();
        if (wants("cpq")) count_priority_queues();
        if (wants("dense") || wants("tiles")) make_dense();
        if (wants("dense")) count_dense();
        if (wants("tiles")) count_tiles_only();
    }

private:
    CountedRows out() { return {out_rows_.data(), out_counts_.data(), out_found_.data()}; }
    double milliseconds(const std::function<void()>& work)
    {
        work();
        std::vector<double> times;
        for (std::size_t i = 0; i < arguments_.number("repeat", 9); ++i) times.push_back(timer_.time(work));
        return bench::median(times);
    }

    // The answers of the first queries by comparing all values.
    void count_on_cpu()
    {
        const std::uint32_t functions = hashing_.functions().count;
        for (std::uint32_t query = 0; query < std::min<std::size_t>(asked_.rows, arguments_.number("checked", 4));
             ++query) {
            std::vector<std::pair<std::uint32_t, std::uint32_t>> all(rows_.rows);
            for (std::uint32_t row = 0; row < rows_.rows; ++row) {
                std::uint32_t count = 0;
                for (std::uint32_t f = 0; f < functions; ++f)
                    count +=
                        rows_.host[std::size_t{row} * functions + f] == asked_.host[std::size_t{query} * functions + f];
                all[row] = {~count, row};
            }
            std::partial_sort(all.begin(), all.begin() + k_, all.end());
            all.resize(k_);
            expected_.push_back(std::move(all));
        }
        // Postings: rows by value, summed over the queries.
        std::vector<std::uint64_t> lengths(std::size_t{functions} * hashing_.functions().buckets);
        for (std::size_t i = 0; i < rows_.host.size(); ++i)
            ++lengths[i % functions * hashing_.functions().buckets + rows_.host[i]];
        for (std::size_t i = 0; i < asked_.host.size(); ++i)
            postings_ += lengths[i % functions * hashing_.functions().buckets + asked_.host[i]];
        std::printf("postings of the queries: %.3e\n", static_cast<double>(postings_));
    }

    void print_match(const char* name, double match, double whole)
    {
        std::printf("%-24s match %8.3f ms (%.2e postings/s), whole %8.3f ms, %.0f queries/s\n", name, match,
                    static_cast<double>(postings_) / match * 1e3, whole, asked_.rows / whole * 1e3);
    }

    void check_answers(const char* name)
    {
        const Answers answers{received(out_rows_, stream_), received(out_counts_, stream_),
                              received(out_found_, stream_)};
        for (std::size_t query = 0; query < expected_.size(); ++query)
            for (std::size_t i = 0; i < k_; ++i)
                if (answers.rows[query * k_ + i] != expected_[query][i].second ||
                    answers.counts[query * k_ + i] != ~expected_[query][i].first)
                    throw std::runtime_error(std::string(name) + ": wrong row at place " + std::to_string(i));
        std::uint64_t digest = 0;
        for (std::size_t i = 0; i < answers.rows.size(); ++i)
            digest = digest * 1000003 + answers.rows[i] * 512ULL + answers.counts[i];
        std::printf("%-24s %zu queries as on the CPU; digest of all %016llx\n", name, expected_.size(),
                    static_cast<unsigned long long>(digest));
        print_recall(answers);
    }

    // Of the k candidates, the 10 nearest by exact distance against the true ones.
    void print_recall(const Answers& answers)
    {
        if (arguments_.text("truth", "").empty()) return;
        const std::vector<std::uint8_t> bytes =
            read_records(arguments_.text("truth", ""), true_neighbours * sizeof(std::int32_t));
        const auto* truth = reinterpret_cast<const std::int32_t*>(bytes.data());
        const std::size_t dimensions = hashing_.functions().dimensions;
        std::size_t nearest = 0;
        std::size_t found = 0;
        for (std::size_t query = 0; query < asked_.rows; ++query) {
            std::vector<std::pair<std::int64_t, std::int32_t>> ranked;
            for (std::size_t i = 0; i < k_; ++i) {
                const std::uint32_t row = answers.rows[query * k_ + i];
                std::int64_t distance = 0;
                for (std::size_t d = 0; d < dimensions; ++d) {
                    const std::int64_t less = base_[row * dimensions + d] - queries_[query * dimensions + d];
                    distance += less * less;
                }
                ranked.emplace_back(distance, row);
            }
            std::sort(ranked.begin(), ranked.end());
            const std::int32_t* true_rows = truth + query * true_neighbours;
            nearest +=
                std::any_of(ranked.begin(), ranked.end(), [&](const auto& row) { return row.second == true_rows[0]; });
            for (std::size_t i = 0; i < std::min<std::size_t>(10, k_); ++i)
                found += std::find(true_rows, true_rows + 10, ranked[i].second) != true_rows + 10;
        }
        std::printf("%-24s recall@10 after exact re-rank %.4f; nearest among the %u: %.4f\n", "",
                    static_cast<double>(found) / (10.0 * asked_.rows), k_, static_cast<double>(nearest) / asked_.rows);
    }

    void make_lists()
    {
        const Functions& functions = hashing_.functions();
        std::vector<std::uint64_t> offsets(rows_.rows + std::size_t{1});
        for (std::size_t row = 0; row <= rows_.rows; ++row) offsets[row] = row * functions.count;
        const auto device_offsets = sent(offsets, context_, stream_);
        DeviceArray<std::uint32_t> keywords(context_.pool(), rows_.device.size(), "bench", stream_);
        keywords_kernel<<<static_cast<unsigned>(keywords.size() / 256 + 1), 256, 0, stream_>>>(
            rows_.device.data(), keywords.size(), functions.count, functions.buckets, keywords.data());
        check_launch("keywords");
        const double ms = milliseconds([&] {
            lists_ = {};
            lists_ = KeywordLists({rows_.rows, device_offsets.data(), keywords.data()}, context_.pool(), lease_);
        });
        std::printf("%-24s %8.3f ms, %.3e postings, %.1f MB\n", "lists", ms, static_cast<double>(lists_.postings()),
                    static_cast<double>(lists_.memory_bytes()) / 1e6);
        make_items();
    }

    // The queries as items of one keyword a function.
    void make_items()
    {
        const Functions& functions = hashing_.functions();
        std::vector<Item> items;
        std::vector<std::uint32_t> offsets{0};
        item_queries_.count = asked_.rows;
        for (std::uint32_t query = 0; query < asked_.rows; ++query) {
            for (std::uint32_t f = 0; f < functions.count; ++f) {
                const std::uint32_t keyword =
                    f * functions.buckets + asked_.host[std::size_t{query} * functions.count + f];
                items.push_back({keyword, keyword});
            }
            offsets.push_back(static_cast<std::uint32_t>(items.size()));
            item_queries_.bound = std::max(
                item_queries_.bound, count_bound(lists_, std::span(items).subspan(offsets[query], functions.count)));
        }
        items_ = sent(items, context_, stream_);
        item_offsets_ = sent(offsets, context_, stream_);
        item_queries_.items = items_.data();
        item_queries_.item_offsets = item_offsets_.data();
    }

    void print_memory(double counters, double table)
    {
        std::printf("%-24s a query: %.0f bytes of counters and %.0f of tables, 1/%.1f of 32 bits a row\n", "", counters,
                    table, 4.0 * rows_.rows / (counters + table));
    }

    void count_postings()
    {
        DeviceArray<std::byte> workspace(
            context_.pool(), top_counts_workspace_bytes(lists_.view(), item_queries_, k_, context_), "bench", stream_);
        const double whole = milliseconds(
            [&] { top_counts(lists_.view(), item_queries_, k_, out(), workspace.data(), context_, stream_); });
        check_answers("postings");
        const auto least = sent(std::vector<std::uint32_t>(asked_.rows, item_queries_.bound + 1), context_, stream_);
        CountQueries unattainable = item_queries_;
        unattainable.least = least.data();
        const double match =
            milliseconds([&] { rows_of_counts(lists_.view(), unattainable, k_, out(), context_, stream_); });
        print_match("postings", match, whole);
        print_memory(range_rows, 0);
    }

    // The paper's count priority queue. Its counts must be those of the product.
    void count_priority_queues()
    {
        DeviceArray<std::byte> workspace(
            context_.pool(), top_counts_workspace_bytes(lists_.view(), item_queries_, k_, context_), "bench", stream_);
        top_counts(lists_.view(), item_queries_, k_, out(), workspace.data(), context_, stream_);
        const std::vector<std::uint32_t> expected = received(out_counts_, stream_);
        bench::CountPriorityQueues queues(asked_.rows, rows_.rows, k_, item_queries_.bound, context_.pool(), stream_);
        const double match = milliseconds([&] { queues.match(lists_.view(), item_queries_); });
        const double select = milliseconds([&] { queues.select(out_counts_.data()); });
        if (received(out_counts_, stream_) != expected) throw std::runtime_error("c-PQ: other counts");
        print_match("c-PQ of the paper", match, match + select);
        print_memory(static_cast<double>(queues.counter_bytes_a_query()),
                     static_cast<double>(queues.table_bytes_a_query()));
    }

    void make_dense()
    {
        const Functions& functions = hashing_.functions();
        dense_ = {rows_.rows, functions.count, functions.buckets, dense_stride(rows_.rows), nullptr};
        values_ = DeviceArray<std::uint8_t>(context_.pool(), dense_.functions * dense_.stride, "bench", stream_);
        dense_.values = values_.data();
        const double ms = milliseconds([&] {
            transpose_signatures(rows_.device.data(), rows_.rows, functions.count, values_.data(), dense_.stride, 0,
                                 stream_);
        });
        std::printf("%-24s %8.3f ms, %.1f MB\n", "dense form", ms, static_cast<double>(values_.bytes()) / 1e6);
    }

    void count_dense()
    {
        const DenseQueries queries{asked_.rows, asked_.device.data(), nullptr};
        DeviceArray<std::byte> workspace(
            context_.pool(), top_dense_counts_workspace_bytes(dense_, asked_.rows, k_, context_), "bench", stream_);
        const double whole =
            milliseconds([&] { top_dense_counts(dense_, queries, k_, out(), workspace.data(), context_, stream_); });
        check_answers("dense");
        print_match("dense", whole, whole);
    }

    // The kernel of tiles alone, with thresholds that no row reaches.
    void count_tiles_only()
    {
        DenseCodes codes;
        codes.queries = asked_.rows;
        codes.padded = (asked_.rows + tile_queries - 1) / tile_queries * tile_queries;
        DeviceArray<uint4> words(context_.pool(), std::size_t{codes.padded} * function_chunks(dense_.functions),
                                 "bench", stream_);
        codes.words = words.data();
        const auto thresholds = sent(std::vector<std::uint32_t>(codes.padded, 65535), context_, stream_);
        DensePassed passed;
        passed.thresholds = thresholds.data();
        write_dense_codes(dense_, {asked_.rows, asked_.device.data(), nullptr}, codes, stream_);
        const double ms = milliseconds([&] { count_tiles(dense_, nullptr, codes, passed, context_, stream_); });
        std::printf("tiles                    match %8.3f ms (%.2e postings/s)\n", ms,
                    static_cast<double>(postings_) / ms * 1e3);
    }

    const Arguments& arguments_;
    Context context_;
    Context::Lease lease_;
    cudaStream_t stream_;
    bench::EventTimer timer_;
    Hashing hashing_;
    std::uint32_t k_;
    std::vector<std::uint8_t> base_;
    std::vector<std::uint8_t> queries_;
    Signatures rows_;
    Signatures asked_;
    std::uint64_t postings_ = 0;
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> expected_;  // ~count, row
    DeviceArray<std::uint32_t> out_rows_;
    DeviceArray<std::uint32_t> out_counts_;
    DeviceArray<std::uint32_t> out_found_;
    KeywordLists lists_;
    CountQueries item_queries_;
    DeviceArray<Item> items_;
    DeviceArray<std::uint32_t> item_offsets_;
    DenseRows dense_;
    DeviceArray<std::uint8_t> values_;
};

void run(const Arguments& arguments)
{
    if (arguments.text("base", "").empty() || arguments.text("queries", "").empty()) {
        std::fputs(usage, stderr);
        throw std::invalid_argument("no data");
    }
    Bench(arguments).run();
}

}  // namespace

int main(int count, char** values)
{
    return bench::run_benchmark(count, values, run);
}
