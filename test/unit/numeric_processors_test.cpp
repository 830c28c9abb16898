// The number of processors that the process may use.
#include "numeric/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace pgwarp
{
namespace
{

TEST(Processors, AreThoseThatTheThreadMayRunOn)
{
    std::size_t alone = 0;
    std::thread bound([&] {
        cpu_set_t all;
        ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
        int first = 0;
        while (!CPU_ISSET(first, &all)) ++first;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
        alone = usable_processors();
    });
    bound.join();
    EXPECT_EQ(alone, 1U);
    EXPECT_GE(usable_processors(), 1U);
    EXPECT_LE(usable_processors(), system_processors());
    EXPECT_LE(usable_processors(), std::thread::hardware_concurrency());
}

}  // namespace
}  // namespace pgwarp
