// A load of ivfadc for which memory runs short while lists are laid out: whoever writes meanwhile or afterwards is told
// so, or goes on, as helpers of a load do.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "device/context.h"
#include "device/error.h"
#include "ivfadc/ivfadc.h"
#include "methods_fixture.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t dimensions = 16;
constexpr std::size_t row_count = 40000;

bool is_array(const ArrayShape& shape, const char* name)
{
    return std::strncmp(shape.name, name, sizeof(shape.name)) == 0;
}

// How a write ends: 0 done, 1 short memory, 2 anything else.
int write_piece(Searcher& searcher, const char* array, std::span<const std::byte> bytes)
{
    try {
        searcher.write(array, 0, bytes);
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}

// Memory is taken when all but the rows has come: the lists cannot be laid out, a piece of the rows finds room. Ends
// the process: 0 where two writes were told that memory is short, and a third one and a search succeeded when there was
// some again.
void load_while_memory_is_short()
{
    cuda::exit_on_sticky_errors();
    ThreadPool pool(1);
    const std::vector<float> rows = random_rows(row_count, dimensions, 5);
    const Index index(Method::ivfadc, Metric::l2, dimensions, rows, make_list({{"codes", 1}, {"lists", 40}}), pool);
    cuda::Context context(0, std::uint64_t{64} << 20);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const auto searcher = cuda::ivfadc::make_searcher(index.shape, index.builder->effective_options(), arrays, context);
    for (const ArrayShape& array : arrays) {
        const std::vector<std::byte> bytes = index.contents(array);
        if (!is_array(array, "half")) {
            searcher->write(array.name, 0, bytes);
            continue;
        }
        const std::span<const std::byte> piece = std::span(bytes).first(32 << 10);
        {
            const cuda::Context::Lease stream = context.lease(cuda::Priority::build);
            const cuda::DeviceArray<std::byte> others(context.pool(), context.pool().unspent() - (64 << 10), "others",
                                                      stream);
            if (write_piece(*searcher, array.name, piece) != 1) std::_Exit(11);
            if (write_piece(*searcher, array.name, piece) != 1) std::_Exit(12);
        }
        if (write_piece(*searcher, array.name, bytes) != 0) std::_Exit(13);
    }
    searcher->finish_load(pool);
    SearchBatch batch;
    batch.queries = std::span(rows).first(dimensions);
    batch.count = 1;
    batch.k = 10;
    batch.effort = 40;
    std::vector<std::vector<RowResult>> found;
    std::vector<std::vector<RowResult>> expected;
    searcher->search(batch, found, pool);
    index.searcher->search(batch, expected, pool);
    if (ids(found[0]) != ids(expected[0])) std::_Exit(14);
    std::_Exit(0);
}

TEST(IvfadcLoadDeathTest, GoesOnAfterMemoryWasShort)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(load_while_memory_is_short(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace pgwarp::test
