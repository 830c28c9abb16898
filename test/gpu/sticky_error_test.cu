// A kernel that writes to an invalid address ends the whole context. The process exits with a line on stderr, and the
// launcher starts another engine.
#include <gtest/gtest.h>

#include "device/context.h"
#include "device/error.h"

namespace pgwarp::test
{
namespace
{

__global__ void write_nowhere(int* nowhere)
{
    *nowhere = 1;
}

void fail(bool exit_first)
{
    if (exit_first) cuda::exit_on_sticky_errors();
    cuda::Context context(0, 0);
    const cuda::Context::Lease stream = context.lease(cuda::Priority::search);
    write_nowhere<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(64));
    cuda::check_launch("writing nowhere");
    try {
        stream.stream().synchronize();
    } catch (const cuda::CudaError& error) {
        std::fprintf(stderr, "%s: %s\n", error.sticky() ? "sticky" : "passing", error.what());
        // The context does not work any more.
        std::_Exit(cudaFree(nullptr) != cudaSuccess ? 7 : 8);
    }
    std::_Exit(0);
}

// The context is lost, but the call that reports it returns a code that is not sticky.
void fail_with_another_code()
{
    cuda::Context context(0, 0);
    const cuda::Context::Lease stream = context.lease(cuda::Priority::search);
    cuda::exit_on_sticky_errors();
    write_nowhere<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(64));
    (void)cudaStreamSynchronize(stream);
    try {
        cuda::check(cudaErrorInvalidValue, "asking for something else");
    } catch (const cuda::CudaError&) {
        std::_Exit(8);
    }
    std::_Exit(9);
}

class StickyError : public testing::Test
{
protected:
    // Each death test runs in a process of its own, with its own context.
    void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using StickyErrorDeathTest = StickyError;

TEST_F(StickyErrorDeathTest, EndsTheEngine)
{
    EXPECT_EXIT(fail(true), testing::ExitedWithCode(EXIT_FAILURE),
                "the CUDA device failed while waiting for the device: an illegal memory access");
}

TEST_F(StickyErrorDeathTest, IsKnownAsSuch)
{
    EXPECT_EXIT(fail(false), testing::ExitedWithCode(7), "sticky: waiting for the device");
}

TEST_F(StickyErrorDeathTest, IsFoundWhateverItsCode)
{
    EXPECT_EXIT(fail_with_another_code(), testing::ExitedWithCode(EXIT_FAILURE),
                "the CUDA device failed while asking for something else");
}

TEST(PassingError, IsNotStickyWhereTheContextWorks)
{
    cuda::Context context(0, 0);
    const cuda::Context::Lease stream = context.lease(cuda::Priority::search);
    for (const cudaError_t code : {cudaErrorInvalidValue, cudaErrorNotSupported, cudaErrorInvalidResourceHandle,
                                   cudaErrorLaunchOutOfResources, cudaErrorSystemNotReady}) {
        EXPECT_FALSE(cuda::CudaError(code, "something").sticky()) << cudaGetErrorString(code);
    }
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(PassingError, LeavesTheContextAlone)
{
    cuda::Context context(0, 0);
    const cuda::Context::Lease stream = context.lease(cuda::Priority::search);
    try {
        cuda::check(cudaMemcpyAsync(nullptr, nullptr, 16, cudaMemcpyHostToDevice, stream), "copying nothing");
        FAIL();
    } catch (const cuda::CudaError& error) {
        EXPECT_FALSE(error.sticky());
    }
    stream.stream().synchronize();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace pgwarp::test
