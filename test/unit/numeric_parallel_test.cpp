// The thread pool: every index is visited once, errors and cancels reach the caller, callers share the threads.
#include "numeric/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "numeric/processors.h"

namespace pgwarp
{
namespace
{

// Run a loop and return how often each index was visited; check the pieces.
std::vector<int> visits(ThreadPool& pool, std::size_t count, std::size_t grain)
{
    std::vector<std::atomic<int>> seen(count);
    pool.parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
        EXPECT_LT(begin, end);
        EXPECT_EQ(begin % std::max<std::size_t>(grain, 1), 0U);
        EXPECT_LE(end - begin, std::max<std::size_t>(grain, 1));
        for (std::size_t i = begin; i < end; ++i) seen[i].fetch_add(1, std::memory_order_relaxed);
    });
    return {seen.begin(), seen.end()};
}

TEST(ThreadPool, VisitsEveryIndexOnce)
{
    for (const std::size_t threads : {1, 2, 5}) {
        ThreadPool pool(threads);
        EXPECT_EQ(pool.threads(), threads);
        for (const std::size_t count : {0, 1, 2, 7, 100, 10001}) {
            for (const std::size_t grain : {0, 1, 3, 100, 20000}) {
                EXPECT_EQ(visits(pool, count, grain), std::vector<int>(count, 1)) << threads << " " << count;
            }
        }
    }
}

// The processors that this process may run on.
TEST(ThreadPool, ZeroMeansAllCores)
{
    ThreadPool pool(0);
    EXPECT_EQ(pool.threads(), usable_processors());
    EXPECT_LE(pool.threads(), std::max(1U, std::thread::hardware_concurrency()));
}

TEST(ThreadPool, OneThreadRunsPiecesInOrderOnTheCaller)
{
    ThreadPool pool(1);
    std::vector<std::size_t> begins;
    pool.parallel_for(10, 3, [&](std::size_t begin, std::size_t) { begins.push_back(begin); });
    EXPECT_EQ(begins, (std::vector<std::size_t>{0, 3, 6, 9}));
}

TEST(ThreadPool, EveryThreadTakesPart)
{
    ThreadPool pool(4);
    for (int round = 0; round < 3; ++round) {
        // Each piece waits for the other three, so that no thread can run two of them.
        std::atomic<int> inside{0};
        pool.parallel_for(4, 1, [&](std::size_t, std::size_t) {
            inside.fetch_add(1);
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
            while (inside.load() < 4 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
            EXPECT_EQ(inside.load(), 4);
        });
        // Long enough for all to fall asleep.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

TEST(ThreadPool, RethrowsAndWorksOn)
{
    for (const std::size_t threads : {1, 4}) {
        ThreadPool pool(threads);
        for (int round = 0; round < 50; ++round) {
            std::atomic<int> inside{0};
            const auto throwing = [&](std::size_t begin, std::size_t) {
                ++inside;
                if (begin == 20) throw std::runtime_error("piece " + std::to_string(begin));
                --inside;
            };
            try {
                pool.parallel_for(1000, 1, throwing);
                FAIL() << "nothing thrown";
            } catch (const std::runtime_error& error) {
                EXPECT_STREQ(error.what(), "piece 20");
            }
            // No piece is still running once the call has returned.
            EXPECT_EQ(inside.load(), 1);
            EXPECT_EQ(visits(pool, 100, 1), std::vector<int>(100, 1));
        }
    }
}

TEST(ThreadPool, SkipsTheRestAfterAnException)
{
    ThreadPool pool(2);
    std::atomic<int> runs{0};
    EXPECT_THROW(pool.parallel_for(1000000, 1,
                                   [&](std::size_t, std::size_t) {
                                       ++runs;
                                       throw std::runtime_error("every piece");
                                   }),
                 std::runtime_error);
    EXPECT_LE(runs.load(), 2);
}

TEST(ThreadPool, CancellationReachesTheCaller)
{
    ThreadPool pool(3);
    CancelToken token;
    EXPECT_FALSE(token.cancelled());
    EXPECT_THROW(pool.parallel_for(100000, 1,
                                   [&](std::size_t begin, std::size_t) {
                                       if (begin == 100) token.cancel();
                                       token.check();
                                   }),
                 Cancelled);
}

TEST(ThreadPool, NestedCallsRunOnTheirCaller)
{
    ThreadPool pool(3);
    ThreadPool other(3);
    std::atomic<int> total{0};
    pool.parallel_for(20, 1, [&](std::size_t, std::size_t) {
        const std::thread::id self = std::this_thread::get_id();
        for (ThreadPool* inner : {&pool, &other}) {
            inner->parallel_for(50, 7, [&](std::size_t begin, std::size_t end) {
                EXPECT_EQ(std::this_thread::get_id(), self);
                total += static_cast<int>(end - begin);
            });
        }
    });
    EXPECT_EQ(total.load(), 2000);
}

// A batch of one query has all threads for its rows.
TEST(ThreadPool, LoopsOfOnePieceLeaveTheThreadsToNestedOnes)
{
    ThreadPool pool(4);
    std::atomic<int> inside{0};
    pool.parallel_for(3, 5, [&](std::size_t, std::size_t) {
        // Each piece waits for the other three, so that no thread can run two of them.
        pool.parallel_for(4, 1, [&](std::size_t, std::size_t) {
            inside.fetch_add(1);
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
            while (inside.load() < 4 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
            EXPECT_EQ(inside.load(), 4);
        });
    });
}

TEST(ThreadPool, ServesManyCallersAtOnce)
{
    ThreadPool pool(4);
    std::vector<std::thread> callers;
    std::atomic<int> thrown{0};
    for (int c = 0; c < 8; ++c) {
        callers.emplace_back([&, c] {
            for (int round = 0; round < 300; ++round) {
                const std::size_t count = static_cast<std::size_t>(round * 7 + c) % 97 + 2;
                // Plain writes: the loop itself must order them before its return.
                std::vector<std::size_t> squares(count);
                try {
                    pool.parallel_for(count, 1 + round % 3, [&](std::size_t begin, std::size_t end) {
                        for (std::size_t i = begin; i < end; ++i) squares[i] = i * i;
                        if (round % 50 == 49 && begin == 0) throw std::runtime_error("some");
                    });
                } catch (const std::runtime_error&) {
                    ++thrown;
                    continue;
                }
                for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(squares[i], i * i);
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(thrown.load(), 8 * 6);
}

TEST(ThreadPool, SurvivesShortLivesAndSleeps)
{
    for (int round = 0; round < 100; ++round) {
        ThreadPool pool(3);
        if (round % 3 == 0) continue;
        EXPECT_EQ(visits(pool, 10, 1), std::vector<int>(10, 1));
        if (round % 3 == 2) std::this_thread::sleep_for(std::chrono::microseconds(100));
        EXPECT_EQ(visits(pool, 10, 1), std::vector<int>(10, 1));
    }
}

}  // namespace
}  // namespace pgwarp
