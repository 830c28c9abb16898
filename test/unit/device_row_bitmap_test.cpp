// Forms of bitmaps of dead rows on a device: those of other bitmaps make room.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "methods/row_bitmap.h"

namespace pgwarp
{
namespace
{

// There is room for one at a time.
struct Form {
    explicit Form(int& taken) : taken_(&taken)
    {
        if (taken == 1) throw std::bad_alloc();
        ++taken;
    }
    Form(Form&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
    ~Form()
    {
        if (taken_ != nullptr) --*taken_;
    }
    int* taken_;
};

class FormOfBitmap : public testing::Test
{
protected:
    OfBitmap<Form>::Use get(std::uint64_t version)
    {
        return kept.get(version, [this] { return Form(taken); });
    }

    int taken = 0;
    OfBitmap<Form> kept;
    const std::uint64_t earlier = new_bitmap_version();
    const std::uint64_t later = new_bitmap_version();
};

TEST_F(FormOfBitmap, OfAnotherVersionMakesRoom)
{
    get(earlier);
    EXPECT_THROW(get(later), std::bad_alloc);
    kept.drop_others(later);
    EXPECT_EQ(taken, 0);
    EXPECT_NE(get(later), nullptr);
    EXPECT_EQ(taken, 1);
}

// Either way: bitmaps of predicates follow that of the dead rows and don't replace it.
TEST_F(FormOfBitmap, OfALaterVersionMakesRoomToo)
{
    get(later);
    EXPECT_THROW(get(earlier), std::bad_alloc);
    kept.drop_others(earlier);
    EXPECT_NE(get(earlier), nullptr);
    EXPECT_EQ(taken, 1);
}

TEST_F(FormOfBitmap, OfTheSameVersionStays)
{
    const Form* made = get(later).get();
    kept.drop_others(later);
    EXPECT_EQ(get(later).get(), made);
}

TEST_F(FormOfBitmap, OfEveryVersionGoesForABitmapWithoutOne)
{
    get(later);
    kept.drop_others(0);
    EXPECT_EQ(taken, 0);
}

TEST_F(FormOfBitmap, StaysWhileItIsRead)
{
    {
        const OfBitmap<Form>::Use use = get(earlier);
        kept.drop_others(later);
        EXPECT_EQ(taken, 1);
    }
    EXPECT_EQ(taken, 0);
}

}  // namespace
}  // namespace pgwarp
