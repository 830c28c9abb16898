// The forms that searchers make of a bitmap of dead rows are kept by the bitmap's version alone.
#include "methods/row_bitmap.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pgwarp
{
namespace
{

TEST(RowBitmapVersion, IsNeverTheSameAgain)
{
    const std::uint64_t first = new_bitmap_version();
    EXPECT_GT(first, 0U);
    EXPECT_GT(new_bitmap_version(), first);
}

TEST(OfBitmap, IsMadeOncePerVersion)
{
    OfBitmap<int> kept;
    int made = 0;
    const std::uint64_t version = new_bitmap_version();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(*kept.get(version, [&] { return ++made; }), 1);
    EXPECT_EQ(made, 1);
    EXPECT_EQ(*kept.get(new_bitmap_version(), [&] { return ++made; }), 2);
}

TEST(OfBitmap, WithoutVersionIsMadeAnewEachTime)
{
    OfBitmap<int> kept;
    int made = 0;
    EXPECT_EQ(*kept.get(0, [&] { return ++made; }), 1);
    EXPECT_EQ(*kept.get(0, [&] { return ++made; }), 2);
}

// A search that began before others may still have an earlier version.
TEST(OfBitmap, EarlierVersionDoesNotDriveOutALaterOne)
{
    OfBitmap<int> kept;
    const std::uint64_t earlier = new_bitmap_version();
    const std::uint64_t later = new_bitmap_version();
    kept.get(later, [] { return 2; });
    EXPECT_EQ(*kept.get(earlier, [] { return 1; }), 1);
    EXPECT_EQ(*kept.get(later, [] { return 3; }), 2);
}

// As searches with some predicates and searches without take turns.
TEST(OfBitmap, VersionsInTurnsAreMadeOnce)
{
    OfBitmap<int> kept;
    std::vector<std::uint64_t> versions(OfBitmap<int>::most_kept);
    for (std::uint64_t& version : versions) version = new_bitmap_version();
    int made = 0;
    for (int turn = 0; turn < 3; ++turn)
        for (std::size_t i = 0; i < versions.size(); ++i)
            EXPECT_EQ(*kept.get(versions[i], [&] { return made++; }), static_cast<int>(i));
    // The one that was asked for longest ago makes room.
    kept.get(versions[0], [&] { return made++; });
    EXPECT_EQ(*kept.get(new_bitmap_version(), [&] { return made++; }), static_cast<int>(versions.size()));
    EXPECT_EQ(*kept.get(versions[0], [] { return -1; }), 0);
    EXPECT_EQ(*kept.get(versions[1], [] { return -1; }), -1);
}

TEST(OfBitmap, WhatIsInUseStays)
{
    OfBitmap<int> kept;
    const OfBitmap<int>::Use use = kept.get(new_bitmap_version(), [] { return 1; });
    kept.get(new_bitmap_version(), [] { return 2; });
    EXPECT_EQ(*use, 1);
}

TEST(OfBitmap, ThrowingKeepsNothing)
{
    OfBitmap<int> kept;
    const std::uint64_t version = new_bitmap_version();
    EXPECT_THROW(kept.get(version, []() -> int { throw std::bad_alloc(); }), std::bad_alloc);
    EXPECT_EQ(*kept.get(version, [] { return 4; }), 4);
}

TEST(OfBitmap, ManyThreadsMakeItOnce)
{
    OfBitmap<int> kept;
    std::atomic<int> made{0};
    std::atomic<int> wrong{0};
    for (int round = 0; round < 200; ++round) {
        const std::uint64_t version = new_bitmap_version();
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                if (*kept.get(version, [&] { return ++made; }) != round + 1) ++wrong;
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(made.load(), 200);
    EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace pgwarp
