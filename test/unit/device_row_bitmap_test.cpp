// Forms of bitmaps of dead rows on a device: that of an earlier bitmap makes room for its successor.
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

TEST_F(FormOfBitmap, OfAnEarlierVersionMakesRoom)
{
    get(earlier);
    EXPECT_THROW(get(later), std::bad_alloc);
    kept.drop_before(later);
    EXPECT_EQ(taken, 0);
    EXPECT_NE(get(later), nullptr);
    EXPECT_EQ(taken, 1);
}

TEST_F(FormOfBitmap, OfTheSameVersionOrALaterOneStays)
{
    const Form* made = get(later).get();
    kept.drop_before(later);
    kept.drop_before(earlier);
    kept.drop_before(0);
    EXPECT_EQ(get(later).get(), made);
}

TEST_F(FormOfBitmap, StaysWhileItIsRead)
{
    {
        const OfBitmap<Form>::Use use = get(earlier);
        kept.drop_before(later);
        EXPECT_EQ(taken, 1);
    }
    EXPECT_EQ(taken, 0);
}

// A search that began before is answered, and keeps no form for which the later version then lacks room.
TEST_F(FormOfBitmap, ThatWasDroppedIsNotKeptAgain)
{
    get(earlier);
    kept.drop_before(later);
    EXPECT_NE(get(earlier), nullptr);
    EXPECT_EQ(taken, 0);
    EXPECT_NE(get(later), nullptr);
}

}  // namespace
}  // namespace pgwarp
