// The mirror of ivfadc as it is loaded, with kernels that note what they are given: memory that runs short while the
// lists are laid out.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "cluster/hadamard.h"
#include "fake_cuda.h"
#include "ivfadc/mirror.h"
#include "ivfadc/mirror_kernels.h"
#include "methods/arrays.h"
#include "rows/forms.h"

namespace pgwarp::test
{
namespace
{

// Launches that place half vectors, by what they look positions up in.
struct Placed {
    std::mutex mutex;
    std::size_t somewhere = 0;
    std::size_t nowhere = 0;
};

Placed& placed()
{
    static Placed all;
    return all;
}

}  // namespace
}  // namespace pgwarp::test

namespace pgwarp::cuda::rows
{

void scatter_halves(const std::byte*, std::uint64_t, std::size_t, std::uint32_t, const std::uint32_t* position_of,
                    __half*, cudaStream_t)
{
    test::Placed& all = test::placed();
    const std::lock_guard lock(all.mutex);
    ++(position_of != nullptr ? all.somewhere : all.nowhere);
}

float power_of_two(float, int)
{
    return 1;
}

// Kernels of no interest here.
void scatter_codes(const std::byte*, std::uint64_t, std::size_t, std::uint32_t, const std::uint32_t*, std::uint8_t*,
                   cudaStream_t)
{
}
void scatter_bytes(const std::byte*, std::uint64_t, std::size_t, std::uint32_t, const std::uint32_t*, std::uint8_t*,
                   cudaStream_t)
{
}
void largest_deviation(const float*, const float*, std::size_t, std::uint32_t, std::size_t, float*, cudaStream_t) {}
void encode_halves(const float*, const std::uint32_t*, std::size_t, const float*, float, std::uint32_t, std::size_t,
                   __half*, cudaStream_t)
{
}
void half_terms(const __half*, const std::uint32_t*, std::size_t, std::size_t, std::uint32_t, bool, float*,
                cudaStream_t)
{
}

}  // namespace pgwarp::cuda::rows

namespace pgwarp::cuda
{

void hadamard_rotate_rows(const float*, std::size_t, std::size_t, const ResidualBase&, const std::uint8_t*, float*,
                          cudaStream_t)
{
}

namespace ivfadc
{

void code_terms(const MirrorView&, const float*, float*, cudaStream_t) {}
void byte_terms(const MirrorView&, float*, cudaStream_t) {}
void rotate(const float*, const float*, std::size_t, std::uint32_t, float*, cudaStream_t) {}

}  // namespace ivfadc
}  // namespace pgwarp::cuda

namespace pgwarp::test
{
namespace
{

using namespace cuda;

constexpr std::size_t rows = 40000;
constexpr std::size_t lists = 40;
constexpr std::size_t dimensions = 16;
constexpr std::size_t piece_bytes = 32 << 10;  // of the half vectors; the positions of all rows take more

class IvfadcMirror : public testing::Test
{
protected:
    void SetUp() override
    {
        IndexShape shape{};
        shape.method = Method::ivfadc;
        shape.metric = static_cast<std::uint8_t>(Metric::l2);
        shape.dimensions = dimensions;
        ParameterList options;
        options.set("codes", 1);
        options.set("lists", lists);
        const ArrayShape arrays[] = {make_array_shape("centroids", ArrayType::f32, lists, dimensions),
                                     make_array_shape("half_mean", ArrayType::f32, 1, dimensions),
                                     make_array_shape("half_scale", ArrayType::f32, 1, 2),
                                     make_array_shape("list_of_row", ArrayType::u32, rows, 1),
                                     make_array_shape("half", ArrayType::f16, rows, dimensions)};
        mirror = std::make_unique<cuda::ivfadc::Mirror>(context, shape, options, arrays);
        std::vector<std::uint32_t> list_of_row(rows);
        for (std::size_t i = 0; i < rows; ++i) list_of_row[i] = static_cast<std::uint32_t>(i % lists);
        mirror->write("list_of_row", 0, std::as_bytes(std::span(list_of_row)));
        placed().somewhere = placed().nowhere = 0;
    }
    void write_piece(std::size_t number)
    {
        mirror->write("half", number * piece_bytes, std::span<const std::byte>(piece));
    }
    // What is left then is enough for a piece, not for the positions.
    DeviceArray<std::byte> others_take_memory(cudaStream_t stream)
    {
        return {context.pool(), context.pool().unspent() - 2 * piece_bytes, "others", stream};
    }

    Context context{0, std::uint64_t{64} << 20};
    std::vector<std::byte> piece = std::vector<std::byte>(piece_bytes);
    std::unique_ptr<cuda::ivfadc::Mirror> mirror;
};

TEST_F(IvfadcMirror, LaysTheListsOutOnce)
{
    write_piece(0);
    write_piece(1);
    EXPECT_EQ(placed().somewhere, 2U);
    EXPECT_EQ(placed().nowhere, 0U);
}

TEST_F(IvfadcMirror, LaysTheListsOutAgainAfterMemoryWasShort)
{
    const Context::Lease stream = context.lease(Priority::build);
    {
        const DeviceArray<std::byte> others = others_take_memory(stream);
        EXPECT_THROW(write_piece(0), std::bad_alloc);
        EXPECT_THROW(write_piece(1), std::bad_alloc);
    }
    write_piece(2);
    EXPECT_EQ(placed().nowhere, 0U) << "a kernel looks positions up at no address";
    EXPECT_EQ(placed().somewhere, 1U);
}

// Several connections help with one load: all are told, and none of them goes on with no positions.
TEST_F(IvfadcMirror, TellsAllWhoHelpThatMemoryIsShort)
{
    const Context::Lease stream = context.lease(Priority::build);
    const DeviceArray<std::byte> others = others_take_memory(stream);
    std::atomic<int> told{0};
    std::vector<std::thread> helpers;
    for (std::size_t i = 0; i < 4; ++i) {
        helpers.emplace_back([&, i] {
            try {
                write_piece(i);
            } catch (const std::bad_alloc&) {
                ++told;
            }
        });
    }
    for (std::thread& helper : helpers) helper.join();
    EXPECT_EQ(told, 4);
    EXPECT_EQ(placed().nowhere, 0U) << "a kernel looks positions up at no address";
}

}  // namespace
}  // namespace pgwarp::test
