// Work that the first of several threads does, and the next does again where it failed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "methods/ivfadc/inverted_lists.h"
#include "methods/once.h"

namespace pgwarp::test
{
namespace
{

TEST(Once, IsDoneForAllThreadsAfterItFailedForSome)
{
    Once once;
    std::atomic<int> tries{0};
    std::atomic<int> told{0};
    int done = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            try {
                once.run([&] {
                    if (++tries <= 3) throw std::bad_alloc();
                    ++done;
                });
                EXPECT_EQ(done, 1);
            } catch (const std::bad_alloc&) {
                ++told;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(told, 3);
    EXPECT_EQ(tries, 4);
}

TEST(InvertedLists, AreArrangedAnewAfterAFailure)
{
    InvertedLists lists(3, 5);
    const std::uint32_t wrong[] = {2, 0, 2, 1, 7};
    std::ranges::copy(wrong, lists.list_of_row().begin());
    EXPECT_THROW(lists.arrange(), BadRequest);
    lists.list_of_row()[4] = 0;
    lists.arrange();
    std::vector<std::uint32_t> begin;
    for (std::size_t list = 0; list <= lists.lists(); ++list) begin.push_back(lists.begin(list));
    EXPECT_EQ(begin, (std::vector<std::uint32_t>{0, 2, 3, 5}));
    std::vector<std::uint32_t> rows;
    for (std::size_t position = 0; position < lists.rows(); ++position) rows.push_back(lists.row_at(position));
    EXPECT_EQ(rows, (std::vector<std::uint32_t>{1, 4, 3, 0, 2}));
    for (std::uint32_t row = 0; row < rows.size(); ++row) EXPECT_EQ(lists.row_at(lists.position_of(row)), row);
}

}  // namespace
}  // namespace pgwarp::test
