// Attributes of rows on the device: sent once, whole when the first search has them, and again where memory was short.
#include "rows/resident_attributes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include "fake_cuda.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda;

constexpr std::size_t columns = 2;
constexpr std::size_t row_count = 1000;

class ResidentAttributesTest : public testing::Test
{
protected:
    ResidentAttributesTest()
    {
        for (std::size_t i = 0; i < codes_.size(); ++i) codes_[i] = 3 * i + 1;
        filter_.attributes = codes_.data();
        filter_.columns = columns;
    }
    void expect_sent(const rows::AttributeView& view) const
    {
        ASSERT_EQ(view.columns, columns);
        EXPECT_NE(view.codes, codes_.data());
        EXPECT_TRUE(std::equal(codes_.begin(), codes_.end(), view.codes));
        ASSERT_NE(view.spans, nullptr);
        EXPECT_EQ(view.spans[0].first, 1U);
        EXPECT_EQ(view.spans[0].last, codes_[codes_.size() - 2]);
        EXPECT_EQ(view.spans[1].first, 4U);
        EXPECT_EQ(view.spans[1].last, codes_.back());
    }

    std::vector<std::uint64_t> codes_ = std::vector<std::uint64_t>(row_count * columns);
    RowFilter filter_;
    Context context_{0, std::uint64_t{1} << 30};
    rows::ResidentAttributes resident_{context_};
};

// Other streams, which do not wait for the copy, read what is there when get() returns.
TEST_F(ResidentAttributesTest, AreWholeWhenASearchHasThem)
{
    {
        // The stream of the copy, which is late.
        const Context::Lease stream = context_.lease(Priority::search);
        launch(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
    }
    expect_sent(resident_.get(filter_, row_count));
    EXPECT_EQ(resident_.bytes(), codes_.size() * sizeof(codes_[0]));
}

TEST_F(ResidentAttributesTest, AreSentOnce)
{
    const std::size_t copies = fake_cuda().copies;
    std::vector<const std::uint64_t*> found(8);
    std::vector<std::thread> threads;
    for (const std::uint64_t*& codes : found)
        threads.emplace_back([&] { codes = resident_.get(filter_, row_count).codes; });
    for (std::thread& thread : threads) thread.join();
    for (const std::uint64_t* codes : found) EXPECT_EQ(codes, found[0]);
    EXPECT_EQ(fake_cuda().copies, copies + 1);
}

TEST_F(ResidentAttributesTest, ComeLaterWhereMemoryIsShort)
{
    const std::size_t free = fake_cuda().free_bytes;
    fake_cuda().free_bytes = fake_cuda().device_bytes + codes_.size();
    EXPECT_THROW(resident_.get(filter_, row_count), std::bad_alloc);
    EXPECT_EQ(resident_.bytes(), 0U);
    fake_cuda().free_bytes = free;
    expect_sent(resident_.get(filter_, row_count));
}

}  // namespace
}  // namespace pgwarp::test
