// The cost of an ivfadc index that does not fit on the device: time to load, page-lock and search it in each form of
// cuda/ivfadc/form.h, and how fast host memory is page-locked. Rows are a Gaussian mixture times a random rotation.
//
//   memory_bench [rows] [dimensions] [lists] [pinned GiB]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "device/context.h"
#include "harness.h"
#include "ivfadc/form.h"
#include "ivfadc/ivfadc.h"
#include "methods.h"
#include "numeric/parallel.h"

namespace pgwarp
{
namespace
{

using bench::Clock;
using bench::seconds_since;

constexpr std::size_t clusters = 1000;

// Mixed by random reflections, so that no axis is special.
std::vector<float> generate(std::size_t count, std::size_t dimensions, unsigned seed, ThreadPool& pool)
{
    std::mt19937 shared(7);
    std::normal_distribution<float> normal;
    std::vector<float> centres(clusters * dimensions);
    for (float& value : centres) value = 2 * normal(shared);
    std::vector<float> mirrors(8 * dimensions);
    for (float& value : mirrors) value = normal(shared);
    std::vector<float> rows(count * dimensions);
    pool.parallel_for(count, 4096, [&](std::size_t begin, std::size_t end) {
        std::mt19937 own(seed + static_cast<unsigned>(begin));
        std::normal_distribution<float> noise;
        for (std::size_t i = begin; i < end; ++i) {
            float* row = rows.data() + i * dimensions;
            const float* centre = centres.data() + own() % clusters * dimensions;
            for (std::size_t d = 0; d < dimensions; ++d)
                row[d] = centre[d] + noise(own) * 4 / std::sqrt(1.0F + static_cast<float>(d));
            for (std::size_t m = 0; m < 8; ++m) {
                const float* v = mirrors.data() + m * dimensions;
                const float norm = std::inner_product(v, v + dimensions, v, 0.0F);
                const float step = 2 * std::inner_product(v, v + dimensions, row, 0.0F) / norm;
                for (std::size_t d = 0; d < dimensions; ++d) row[d] -= step * v[d];
            }
        }
    });
    return rows;
}

struct Loaded {
    std::unique_ptr<Searcher> searcher;
    double write = 0;
    double finish = 0;
};

Loaded load(const IndexShape& shape, const Builder& builder, const std::vector<std::vector<std::byte>>& arrays,
            cuda::Context& context, ThreadPool& pool)
{
    const std::vector<ArrayShape> shapes = builder.arrays();
    Loaded loaded;
    auto begin = Clock::now();
    loaded.searcher = cuda::ivfadc::make_searcher(shape, builder.effective_options(), shapes, context);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        constexpr std::size_t piece = std::size_t{8} << 20;
        const std::size_t pieces = (arrays[i].size() + piece - 1) / piece;
        pool.parallel_for(pieces, 1, [&](std::size_t first, std::size_t last) {
            for (std::size_t p = first; p < last; ++p) {
                const std::size_t length = std::min(piece, arrays[i].size() - p * piece);
                loaded.searcher->write(shapes[i].name, p * piece, std::span(arrays[i]).subspan(p * piece, length));
            }
        });
    }
    loaded.write = seconds_since(begin);
    begin = Clock::now();
    loaded.searcher->finish_load(pool);
    loaded.finish = seconds_since(begin);
    return loaded;
}

using Results = std::vector<std::vector<RowResult>>;

double ask(const Searcher& searcher, std::span<const float> queries, std::size_t count, std::uint32_t k,
           std::size_t probes, ThreadPool& pool, Results& results)
{
    SearchBatch batch;
    batch.queries = queries;
    batch.count = count;
    batch.k = k;
    batch.effort = static_cast<std::int64_t>(probes);
    std::vector<double> times;
    const auto end = Clock::now() + std::chrono::milliseconds(150);
    do {
        const auto begin = Clock::now();
        searcher.search(batch, results, pool);
        times.push_back(seconds_since(begin));
    } while (times.size() < 3 || (Clock::now() < end && times.size() < 1000));
    return bench::median(times);
}

double recall_of(const Results& found, const Results& truth, std::size_t count)
{
    std::size_t shared = 0;
    std::size_t all = 0;
    for (std::size_t q = 0; q < count; ++q) {
        for (const RowResult& want : truth[q]) {
            shared +=
                std::any_of(found[q].begin(), found[q].end(), [&](const RowResult& one) { return one.row == want.row; })
                    ? 1
                    : 0;
        }
        all += truth[q].size();
    }
    return static_cast<double>(shared) / static_cast<double>(all);
}

void time_forms(std::size_t rows, std::size_t dimensions, std::size_t lists, std::int64_t refine, ThreadPool& pool)
{
    cuda::Context large(0, 0);
    cuda::contexts().push_back(std::make_unique<cuda::Context>(0, 0));
    IndexShape shape{};
    shape.method = Method::ivfadc;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = static_cast<std::uint32_t>(dimensions);
    ParameterList options;
    options.set("lists", static_cast<std::int64_t>(lists));
    options.set("refine", refine);
    RowBuffer buffer(dimensions);
    {
        const std::vector<float> vectors = generate(rows, dimensions, 1, pool);
        std::vector<Tid> tids(rows);
        for (std::size_t i = 0; i < rows; ++i)
            tids[i] = {static_cast<std::uint32_t>(i / 100), static_cast<std::uint16_t>(i % 100 + 1), 0};
        buffer.append(tids, vectors);
    }
    const std::vector<float> queries = generate(10000, dimensions, 99000001, pool);
    auto begin = Clock::now();
    const auto builder = cuda::find_method(Method::ivfadc)->make_builder(shape, options);
    builder->run(buffer, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    std::printf("%zu x %zu, %zu lists, refine = %s: built in %.2f s\n", rows, dimensions, lists,
                refine == 1 ? "half" : "full", seconds_since(begin));
    std::vector<std::vector<std::byte>> arrays;
    for (const ArrayShape& array : builder->arrays()) {
        arrays.emplace_back(array.bytes());
        if (!arrays.back().empty()) builder->read(array.name, 0, arrays.back());
    }
    const IvfOptions resolved = IvfOptions::resolve(builder->effective_options(), rows, dimensions);
    const cuda::ivfadc::MirrorSize size{rows, resolved.lists, dimensions};
    Results truth[2];
    std::uint64_t better = 0;
    std::printf("form    device MB  host MB  write s  finish s  batch  k  probes  factor  recall  queries/s\n");
    for (const cuda::ivfadc::Form form : cuda::ivfadc::forms_of(resolved)) {
        const std::uint64_t bytes = cuda::ivfadc::device_bytes_of(resolved, size, form);
        // A little less than the memory of the next better form, which leaves most for workspaces.
        cuda::Context context(0, better == 0 ? 0 : better - 1);
        better = bytes;
        const Loaded loaded = load(shape, *builder, arrays, context, pool);
        const Searcher& searcher = *loaded.searcher;
        const double device = static_cast<double>(searcher.residence().device_bytes);
        const char* names[] = {"whole", "ranked", "codes"};
        for (const std::size_t batch : {1, 64, 10000}) {
            for (const std::uint32_t k : {10U, 100U}) {
                Results& wanted = truth[k == 10 ? 0 : 1];
                if (wanted.empty()) (void)ask(searcher, queries, 10000, k, resolved.lists, pool, wanted);
                for (const std::size_t probes : {16, 64}) {
                    Results found;
                    ThreadPool alone(1);
                    const double time = ask(searcher, std::span(queries).first(batch * dimensions), batch, k, probes,
                                            batch == 1 ? alone : pool, found);
                    SearchBatch like;
                    like.k = k;
                    std::printf("%-6s %10.1f %8.1f %8.3f %9.3f %6zu %3u %6zu %6lld  %.4f %10.0f\n",
                                names[static_cast<int>(form)], device / 1e6,
                                (static_cast<double>(searcher.memory_bytes()) - device) / 1e6, loaded.write,
                                loaded.finish, batch, k, probes,
                                static_cast<long long>(searcher.resolved_settings(like).get("refine_factor", 0)),
                                recall_of(found, wanted, batch), static_cast<double>(batch) / time);
                }
            }
        }
    }
    cuda::contexts().clear();
}

void time_locking(std::size_t gigabytes)
{
    if (gigabytes == 0) return;
    const std::size_t bytes = gigabytes << 30;
    const cuda::Context context(0, 0);
    auto begin = Clock::now();
    {
        const cuda::PinnedArray<std::byte> plain(bytes);
        std::printf("%zu GiB page-locked at once: %.3f s\n", gigabytes, seconds_since(begin));
    }
    begin = Clock::now();
    cuda::HostMemory memory(bytes);
    std::vector<std::thread> threads;
    constexpr std::size_t count = 8;
    for (std::size_t t = 0; t < count; ++t) {
        threads.emplace_back([&memory, t] {
            std::fill_n(memory.data() + memory.size() / count * t, memory.size() / count, std::byte{1});
        });
    }
    for (std::thread& thread : threads) thread.join();
    const double filled = seconds_since(begin);
    begin = Clock::now();
    memory.lock();
    std::printf("%zu GiB filled by %zu threads in %.3f s, then page-locked in %.3f s\n", gigabytes, count, filled,
                seconds_since(begin));
}

}  // namespace
}  // namespace pgwarp

int main(int count, char** values)
{
    const auto number = [&](int i, std::size_t otherwise) {
        return count > i ? static_cast<std::size_t>(std::atoll(values[i])) : otherwise;
    };
    pgwarp::ThreadPool pool(0);
    pgwarp::time_locking(number(4, 4));
    for (const std::int64_t refine : {1, 2})
        pgwarp::time_forms(number(1, 1000000), number(2, 128), number(3, 2000), refine, pool);
    return 0;
}
