// How long searches of a graph may wait: as long as what they ask of the device may take on a slow one. And copies that
// block are waits that are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "device/context.h"
#include "device/hang.h"
#include "device/wait.h"
#include "graph/form.h"
#include "graph_fixture.h"
#include "ivfadc/ivfadc.h"
#include "methods/device_wait.h"

namespace pgwarp::test
{
namespace
{

using Milliseconds = std::chrono::duration<double, std::milli>;

// The most that a wait of `work` was given.
template <class Work>
Milliseconds patience_of(const Work& work)
{
    std::atomic<bool> done{false};
    auto most = DeviceClock::duration::min();
    std::thread looking([&] {
        while (!done.load()) {
            const DeviceClock::duration left = patience_left();
            if (left != DeviceClock::duration::max()) most = std::max(most, left);
        }
    });
    work();
    done.store(true);
    looking.join();
    return most;
}

// The most that a wait of `work` was given, of at most ten times: where other processes have the processors, the thread
// that looks comes late. Ends at the first time that was given `least`.
template <class Work>
Milliseconds patience_reaching(Milliseconds least, const Work& work)
{
    Milliseconds most = patience_of(work);
    for (int i = 1; i < 10 && most < least; ++i) most = std::max(most, patience_of(work));
    return most;
}

constexpr std::size_t dimensions = 64;
constexpr std::size_t row_count = 22000;
constexpr std::size_t asked = 16384;

const Index& graph_index(ThreadPool& pool)
{
    static const Index index(Method::graph, Metric::l2, dimensions, random_rows(row_count, dimensions, 1),
                             make_list({{"degree", 32}}), pool);
    return index;
}

// Vectors that rank lie on the host: they come over the bus.
TEST(GraphPatience, CoversTheBus)
{
    ThreadPool pool(0);
    const Index& index = graph_index(pool);
    const GraphOptions options = GraphOptions::resolve(index.builder->effective_options(), dimensions);
    std::uint64_t seeds = 0;
    for (const ArrayShape& array : index.builder->arrays()) {
        if (std::string(array.name) == "seeds") seeds = array.rows;
    }
    const std::uint64_t ranked =
        cuda::graph::device_bytes_of(options, {row_count, seeds, dimensions}, cuda::graph::Form::ranked);
    cuda::Context small(0, ranked * 8 / 7 + (std::uint64_t{2} << 20));
    const auto searcher = load_graph(index, small, pool);
    ASSERT_TRUE(searcher->residence().split);
    const std::vector<float> queries = random_rows(asked, dimensions, 2);
    constexpr std::uint32_t k = 400;
    const double bytes = double{1} * asked * k * dimensions * sizeof(float);
    const Milliseconds least = Milliseconds(cuda::patience_for(0, bytes)) - Milliseconds(1);
    const Milliseconds given = patience_reaching(least, [&] {
        ask(*searcher, queries, dimensions, k, make_list({{"ef_search", 600}}), pool);
    });
    std::printf("[ measured ] patience %.0f ms for %.2f GB over the bus\n", given.count(), bytes / 1e9);
    EXPECT_GE(given, least);
}

// Searches keep more rows where many are dead, and take as much longer.
TEST(GraphPatience, GrowsWithDeadRows)
{
    ThreadPool pool(0);
    const auto searcher = load_graph(graph_index(pool), shared_context(), pool);
    const std::vector<float> queries = random_rows(asked, dimensions, 2);
    std::vector<std::uint64_t> dead((row_count + 63) / 64, ~std::uint64_t{0});
    for (std::size_t row = 0; row < row_count; row += 18) dead[row / 64] &= ~(std::uint64_t{1} << (row % 64));
    const ParameterList settings = make_list({{"ef_search", 64}});
    const Milliseconds usual = patience_of([&] { ask(*searcher, queries, dimensions, 10, settings, pool); });
    const double widened = 64.0 * 18;
    const auto operations = [](double ef) { return 2.0 * asked * (4096 + 0.4 * 32 * ef) * dimensions; };
    const Milliseconds least = Milliseconds(cuda::patience_for(operations(widened))) - Milliseconds(2);
    const Milliseconds longer =
        patience_reaching(least, [&] { ask(*searcher, queries, dimensions, 10, settings, pool, dead); });
    std::printf("[ measured ] patience %.1f ms, with 17 of 18 rows dead %.1f ms\n", usual.count(), longer.count());
    EXPECT_GE(longer, least);
}

// The copy from memory that is not page-locked waits for what its stream had before.
TEST(DeviceThatHangs, IsKnownWhileRowsAreSent)
{
    cuda::Context& context = shared_context();
    ThreadPool pool(1);
    const std::vector<float> rows = random_rows(30000, 16, 5);
    const Index index(Method::ivfadc, Metric::l2, 16, rows, make_list({{"codes", 1}, {"lists", 40}}), pool);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const auto searcher = cuda::ivfadc::make_searcher(index.shape, index.builder->effective_options(), arrays, context);
    for (const ArrayShape& array : arrays) {
        const std::vector<std::byte> bytes = index.contents(array);
        if (std::string(array.name) != "half") {
            searcher->write(array.name, 0, bytes);
            continue;
        }
        searcher->write(array.name, 0, std::span(bytes).first(64));
        std::thread writing([&] {
            {
                const cuda::Context::Lease busy = context.lease(cuda::Priority::build);
                cuda::keep_busy(busy, 2);
            }
            searcher->write(array.name, 64, std::span(bytes).subspan(64));
        });
        std::this_thread::sleep_for(std::chrono::seconds(1));
        const DeviceClock::duration left = patience_left();
        writing.join();
        EXPECT_NE(left, DeviceClock::duration::max()) << "the copy waits, and nobody knows";
    }
    searcher->finish_load(pool);
}

}  // namespace
}  // namespace pgwarp::test
