// Filtered searches by matrix tiles that the queries of a batch share (cuda/rows/passing_tiles.h), on generated rows:
// milliseconds of each step, by the device's clock, of chunks as the planner cuts them, and of the host that fills what
// is sent; queries a second of all; queries without a proof. The first queries are also searched by comparisons of each
// query's own rows (passing_rows.h), whose answers give the recall and whose time is the other way's.
//
// shared_scan_bench [--rows n] [--dimensions d] [--queries n,n] [--share .5,.1,.01] [--kinds codes,lists,numbers]
//                   [--halves 1] [--k n] [--judged n] [--repeat n] [--room MB] [--threads n]
// Rows lie around 1,000 centres, whose number is their first attribute; the second is a number of the row's own. codes:
// a range of centres; lists: some centres, all but those about the query's own; numbers: a range of the second
// attribute, whose answers are not looked up in tables. Each query has a predicate of its own but for repeated ranges.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "device/context.h"
#include "device/error.h"
#include "device/wait.h"
#include "device_arrays.h"
#include "harness.h"
#include "rows/forms.h"
#include "rows/passing_rows.h"
#include "rows/passing_tiles.h"

namespace pgwarp::cuda
{
namespace
{

constexpr std::uint64_t centres = 1000;
constexpr std::uint32_t columns = 2;
constexpr std::size_t steps = 4;
constexpr const char* step_names[steps] = {"masks", "scores", "choice", "answers"};

__host__ __device__ std::uint64_t mix(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

__host__ __device__ std::uint64_t centre_of(std::uint64_t seed, std::uint64_t row)
{
    return mix(seed * 77 + row) % centres;
}

__device__ float normal(std::uint64_t seed, std::uint64_t i)
{
    const std::uint64_t bits = mix(seed * 0x9E3779B97F4A7C15ULL + i);
    const float u = (static_cast<float>(bits >> 40) + 0.5F) / 16777216.0F;
    const float v = static_cast<float>(bits & 0xFFFFFFU) / 16777216.0F;
    return sqrtf(-2 * logf(u)) * cospif(2 * v);
}

// Widths fall along the axes, so that rows have near neighbours.
__global__ void make_rows(float* rows, std::uint64_t first, std::uint64_t count, std::uint32_t dimensions,
                          std::uint64_t seed)
{
    const std::uint64_t i = blockIdx.x * std::uint64_t{256} + threadIdx.x;
    if (i >= count * dimensions) return;
    const std::uint64_t row = first + i / dimensions;
    const std::uint64_t d = i % dimensions;
    const float width = 40 / (1 + static_cast<float>(d) / 6);
    rows[row * dimensions + d] =
        width * (normal(1, centre_of(seed, row) * dimensions + d) + normal(seed + 2, row * dimensions + d));
}

DeviceArray<float> generated(Context& context, cudaStream_t stream, std::uint64_t rows, std::uint32_t dimensions,
                             std::uint64_t seed)
{
    DeviceArray<float> array(context.pool(), rows * dimensions, "bench", stream);
    constexpr std::uint64_t step = 1 << 18;
    for (std::uint64_t first = 0; first < rows; first += step) {
        const std::uint64_t count = std::min(step, rows - first);
        make_rows<<<static_cast<unsigned>((count * dimensions + 255) / 256), 256, 0, stream>>>(array.data(), first,
                                                                                               count, dimensions, seed);
        check_launch("generating rows");
    }
    return array;
}

struct Options {
    std::uint32_t rows;
    std::uint32_t dimensions;
    std::uint32_t k;
    std::uint32_t judged;
    int repeat;
    bool halves;
    std::size_t room;
};

class Bench
{
public:
    explicit Bench(const Options& options, std::size_t threads)
        : options_(options), pool_(threads), lease_(context_.lease(Priority::search))
    {
        std::printf("%s: %u rows x %u, %s, k=%u, %zu threads\n", context_.name().c_str(), options.rows,
                    options.dimensions, options.halves ? "halves" : "floats", options.k, pool_.threads());
        vectors_ = generated(context_, lease_, options.rows, options.dimensions, 10);
        for (std::uint64_t row = 0; row < options.rows; ++row) {
            codes_.push_back(centre_of(10, row));
            codes_.push_back(mix(row));
        }
        device_codes_ = bench::sent(codes_, context_, lease_);
        spans_ = {{0, centres - 1}, {0, ~std::uint64_t{0}}};
        attributes_ = {device_codes_.data(), columns, spans_.data()};
        tiled_.compared.resident.metric = Metric::l2;
        tiled_.compared.resident.dimensions = options.dimensions;
        const double start = now();
        options.halves ? keep_halves() : keep_floats();
        std::printf("form of scores: %.1f ms, %.1f MB\n", now() - start, static_cast<double>(scored_.bytes()) / 1e6);
        tiled_.scored = &scored_;
    }

    void run(const std::string& kind, double share, std::uint32_t count)
    {
        const DeviceArray<float> queries = generated(context_, lease_, count, options_.dimensions, 20);
        make_predicates(kind, share, count);
        Result best;
        for (int turn = 0; turn < options_.repeat; ++turn) {
            Result result = search(queries.data());
            if (turn == 0 || result.total < best.total) best = std::move(result);
        }
        std::printf("%-7s %5.1f %%  %6u queries: %8.2f ms, %9.0f q/s, host %.2f; %zu chunks:", kind.c_str(),
                    share * 100, count, best.total, count / best.total * 1e3, best.host, best.chunks);
        for (std::size_t i = 0; i < steps; ++i) std::printf(" %s %.2f", step_names[i], best.milliseconds[i]);
        const double flops = 2.0 * count * options_.rows * options_.dimensions;
        std::printf("; scores %.0f TFLOPS; unproved %zu; ", flops / best.milliseconds[1] / 1e9, best.unproved);
        judge(queries.data(), best, count);
        std::fflush(stdout);
    }

private:
    struct Result {
        double total = 0;
        double host = 0;
        std::array<double, steps> milliseconds{};
        std::size_t chunks = 0;
        std::size_t unproved = 0;
        std::vector<std::uint32_t> found;
        std::vector<std::uint32_t> rows;  // [judged][k]
    };

    static double now()
    {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }

    void keep_floats()
    {
        tiled_.compared.resident.full = vectors_.data();
        scored_ = make_scored_rows(context_.pool(), Metric::l2, ScoreKind::half_l2, vectors_.data(), options_.rows,
                                   options_.dimensions, lease_);
    }
    // The mean is 0, near which rows lie.
    void keep_halves()
    {
        const std::uint32_t positions = rows::whole_groups(options_.rows);
        const std::size_t count = std::size_t{positions} * options_.dimensions;
        mean_ = bench::sent(std::vector<float>(options_.dimensions), context_, lease_);
        halves_ = DeviceArray<__half>(context_.pool(), count, "bench", lease_);
        check(cudaMemsetAsync(halves_.data(), 0, halves_.bytes(), lease_), "clearing");
        constexpr float scale = 16;  // elements below 2^9
        rows::encode_halves(vectors_.data(), nullptr, options_.rows, mean_.data(), scale, options_.dimensions,
                            options_.dimensions, halves_.data(), lease_);
        rows::ResidentRows& resident = tiled_.compared.resident;
        resident.stride = options_.dimensions;
        resident.positions = positions;
        resident.half = {halves_.data(), mean_.data(), scale, 0.1F};
        scored_ = make_scored_halves(
            context_.pool(), ScoreKind::half_l2,
            {halves_.data(), mean_.data(), scale, options_.rows, positions, options_.dimensions}, lease_);
        vectors_ = {};
    }

    void make_predicates(const std::string& kind, double share, std::uint32_t count)
    {
        words_.assign(count, {});
        std::mt19937_64 random(5);
        for (std::uint32_t q = 0; q < count; ++q) {
            const auto wanted = std::max<std::uint64_t>(static_cast<std::uint64_t>(share * centres), 1);
            if (kind == "codes") {
                const std::uint64_t first = q * 37 % (centres - wanted + 1);
                words_[q] = {1, std::uint64_t{1} << 32, first, first + wanted - 1};
            } else if (kind == "numbers") {
                const auto width = static_cast<std::uint64_t>(share * 0x1p64 * (1 - 1e-9));
                const std::uint64_t first = share < 1 ? random() % (~std::uint64_t{0} - width) : 0;
                words_[q] = {1, 1 | std::uint64_t{1} << 32, first, first + width};
            } else {
                const std::uint64_t own = centre_of(20, q);
                words_[q] = {1, 0};
                for (std::uint64_t code = 0; code < centres; ++code) {
                    if (code == own || random() % centres >= wanted) continue;
                    if (words_[q].size() > 2 && words_[q].back() + 1 == code) {
                        words_[q].back() = code;
                    } else {
                        words_[q].insert(words_[q].end(), {code, code});
                    }
                }
                words_[q][1] = std::uint64_t{(words_[q].size() - 2) / 2} << 32;
            }
        }
        predicates_.assign(words_.begin(), words_.end());
    }

    Chunk begin_chunk(const ChunkPlan& plan, const float* queries)
    {
        if (workspace_.size() < plan.workspace)
            workspace_ = DeviceArray<std::byte>(context_.pool(), plan.workspace, "bench", lease_);
        if (host_.size() < plan.host_workspace) host_ = PinnedArray<std::byte>(plan.host_workspace);
        const std::size_t places = std::size_t{plan.count} * plan.k;
        if (values_.size() < places) {
            values_ = DeviceArray<double>(context_.pool(), places, "bench", lease_);
            numbers_ = DeviceArray<std::uint32_t>(context_.pool(), places, "bench", lease_);
        }
        if (found_.size() < plan.count)
            found_ = DeviceArray<std::uint32_t>(context_.pool(), plan.count, "bench", lease_);
        Chunk chunk;
        chunk.queries = queries;
        chunk.workspace = workspace_.data();
        chunk.host_workspace = host_.data();
        chunk.answers = {values_.data(), numbers_.data(), found_.data()};
        chunk.stream = lease_;
        return chunk;
    }

    // Adds the answers of a chunk whose first query is the batch's `first`.
    void take_answers(const ChunkPlan& plan, Result& result)
    {
        const std::size_t first = result.found.size();
        result.found.resize(first + plan.count);
        read_back(result.found.data() + first, found_.data(), plan.count * sizeof(std::uint32_t), lease_, "reading");
        for (std::size_t q = first; q < result.found.size(); ++q)
            if (result.found[q] == no_answer) ++result.unproved;
        if (first >= options_.judged) return;
        const std::size_t some = std::min<std::size_t>(plan.count, options_.judged - first) * plan.k;
        result.rows.resize(first * plan.k + some);
        read_back(result.rows.data() + first * plan.k, numbers_.data(), some * sizeof(std::uint32_t), lease_,
                  "reading");
    }

    Result search(const float* queries)
    {
        Result result;
        cudaEvent_t events[steps + 1];
        for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "timing");
        const double start = now();
        for (std::size_t first = 0; first < predicates_.size();) {
            const double begin = now();
            const rows::TilesPlan plan = rows::plan_passing_tiles(
                tiled_, attributes_, std::span(predicates_).subspan(first), options_.k, options_.room, pool_);
            const Chunk chunk = begin_chunk(plan, queries + first * options_.dimensions);
            check(cudaEventRecord(events[0], lease_), "timing");
            rows::enqueue_passing_tiles(context_, tiled_, plan, chunk, pool_, [&](rows::TilesStep step) {
                check(cudaEventRecord(events[1 + static_cast<std::size_t>(step)], lease_), "timing");
            });
            result.host += now() - begin;
            check(cudaEventSynchronize(events[steps]), "timing");
            for (std::size_t i = 0; i < steps; ++i) {
                float milliseconds = 0;
                check(cudaEventElapsedTime(&milliseconds, events[i], events[i + 1]), "timing");
                result.milliseconds[i] += milliseconds;
            }
            take_answers(plan, result);
            first += plan.count;
            ++result.chunks;
        }
        result.total = now() - start;
        for (const cudaEvent_t event : events) (void)cudaEventDestroy(event);
        return result;
    }

    void judge(const float* queries, const Result& result, std::uint32_t count)
    {
        Result other;
        const std::size_t judged = std::min<std::size_t>(options_.judged, count);
        const double start = now();
        for (std::size_t first = 0; first < judged;) {
            const rows::PassingPlan plan = rows::plan_passing_rows(
                options_.rows, {attributes_, std::span(predicates_).subspan(first, judged - first)}, options_.k);
            const Chunk chunk = begin_chunk(plan, queries + first * options_.dimensions);
            rows::enqueue_passing_rows(tiled_.compared, plan, chunk);
            take_answers(plan, other);
            first += plan.count;
        }
        const double elapsed = now() - start;
        std::size_t right = 0;
        std::size_t wanted = 0;
        for (std::size_t q = 0; q < judged; ++q) {
            if (result.found[q] == no_answer) continue;
            const std::size_t all = std::min(other.found[q], options_.k);
            wanted += all;
            for (std::size_t i = 0; i < std::min<std::size_t>(all, result.found[q]); ++i)
                right += result.rows[q * options_.k + i] == other.rows[q * options_.k + i] ? 1 : 0;
        }
        std::printf("recall %.4f; by pieces %.1f us a query\n",
                    wanted > 0 ? static_cast<double>(right) / static_cast<double>(wanted) : 1.0,
                    elapsed * 1e3 / static_cast<double>(judged));
    }

    Options options_;
    Context context_{0, 0};
    ThreadPool pool_;
    Context::Lease lease_;
    DeviceArray<float> vectors_;
    DeviceArray<float> mean_;
    DeviceArray<__half> halves_;
    std::vector<std::uint64_t> codes_;
    DeviceArray<std::uint64_t> device_codes_;
    std::vector<rows::CodeSpan> spans_;
    rows::AttributeView attributes_;
    ScoredRows scored_;
    rows::TiledRows tiled_;
    std::vector<std::vector<std::uint64_t>> words_;
    std::vector<rows::PredicateWords> predicates_;
    DeviceArray<std::byte> workspace_;
    PinnedArray<std::byte> host_;
    DeviceArray<double> values_;
    DeviceArray<std::uint32_t> numbers_;
    DeviceArray<std::uint32_t> found_;
};

void run(const bench::Arguments& given)
{
    Options options{};
    options.rows = static_cast<std::uint32_t>(given.number("rows", 1'000'000));
    options.dimensions = static_cast<std::uint32_t>(given.number("dimensions", 128));
    options.k = static_cast<std::uint32_t>(given.number("k", 10));
    options.judged = static_cast<std::uint32_t>(given.number("judged", 200));
    options.repeat = static_cast<int>(given.number("repeat", 3));
    options.halves = given.number("halves", 0) != 0;
    options.room = given.number("room", 4096) << 20;
    Bench bench(options, given.number("threads", 0));
    for (const std::string& queries : given.texts("queries", "1000,10000")) {
        for (const std::string& kind : given.texts("kinds", "codes,lists,numbers")) {
            for (const std::string& share : given.texts("share", ".5,.1,.01"))
                bench.run(kind, std::stod(share), static_cast<std::uint32_t>(std::stoul(queries)));
        }
    }
}

}  // namespace
}  // namespace pgwarp::cuda

int main(int count, char** values)
{
    return pgwarp::bench::run_benchmark(count, values, pgwarp::cuda::run);
}
