// Rows of any shape in memory: blocks of a message, a build's buffer, rows that are kept.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "methods/method.h"
#include "methods/rows/owned_rows.h"
#include "methods/rows/stored_lists.h"

namespace pgwarp
{
namespace
{

// Row i has i % 5 words, i * 10 and those that follow, with halves of them as weights, and attributes i and 2 i.
struct Rows {
    explicit Rows(std::size_t first, std::size_t count)
    {
        offsets.push_back(0);
        for (std::size_t i = first; i < first + count; ++i) {
            for (std::uint32_t word = 0; word < i % 5; ++word) {
                words.push_back(static_cast<std::uint32_t>(10 * i) + word);
                weights.push_back(static_cast<float>(words.back()) / 2);
            }
            offsets.push_back(words.size());
            attributes.insert(attributes.end(), {i, 2 * i});
        }
    }
    RowView view() const
    {
        static constexpr float none = 0;
        RowView rows;
        rows.count = offsets.size() - 1;
        rows.attribute_count = 2;
        rows.offsets = offsets.data();
        rows.words = words.data();
        rows.weights = weights.empty() ? &none : weights.data();
        rows.attributes = attributes.data();
        return rows;
    }
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> words;
    std::vector<float> weights;
    std::vector<std::uint64_t> attributes;
};

// Whether row `i` of a view equals the row that Rows makes of `number`.
void expect_row(const RowView& rows, std::size_t i, std::size_t number, bool with_attributes = true)
{
    ASSERT_EQ(rows.list(i).size(), number % 5);
    for (std::size_t at = 0; at < number % 5; ++at) {
        EXPECT_EQ(rows.list(i)[at], 10 * number + at);
        EXPECT_EQ(rows.list_weights(i)[at], static_cast<float>(10 * number + at) / 2);
    }
    if (!with_attributes) return;
    EXPECT_EQ(rows.row(i).attributes[0], number);
    EXPECT_EQ(rows.row(i).attributes[1], 2 * number);
}

IndexShape weighted_shape()
{
    IndexShape shape{};
    shape.element = ElementType::weighted_list;
    shape.attribute_count = 2;
    return shape;
}

TEST(RowShapes, BlocksHoldSlicesOfLists)
{
    const Rows rows(0, 20);
    for (const auto& [first, count] : {std::pair{0, 20}, {3, 9}, {19, 1}, {5, 0}}) {
        const RowView slice = rows.view().slice(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
        const RowBlock block = block_of(slice);
        std::vector<std::uint64_t> bytes(block.bytes() / 8 + 1);
        write_rows(slice, reinterpret_cast<std::byte*>(bytes.data()));
        ASSERT_EQ(row_block_fault(block), nullptr);
        const RowView copy = view_rows(block, reinterpret_cast<const std::byte*>(bytes.data()));
        ASSERT_EQ(copy.layout(), RowLayout::weighted_lists);
        ASSERT_EQ(offsets_fault(copy.offsets, copy.count, block.form.word_count), nullptr);
        for (std::size_t i = 0; i < copy.count; ++i) expect_row(copy, i, static_cast<std::size_t>(first) + i);
    }
}

TEST(RowShapes, BlocksOfDenseRowsAreTheFloatsAlone)
{
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    const RowView rows = dense_rows(values.data(), 2, 3);
    ASSERT_EQ(block_of(rows).bytes(), values.size() * sizeof(float));
    std::vector<float> copy(6);
    write_rows(rows, reinterpret_cast<std::byte*>(copy.data()));
    EXPECT_EQ(copy, values);
    EXPECT_EQ(rows.row(1).dense()[0], 4);
    const RowForm form = block_of(rows).form;
    EXPECT_EQ(form.word_count + form.attribute_count + form.reserved, 0U);
}

// The counted rows fit, and one more doesn't.
TEST(RowShapes, AsManyRowsAsABlockHoldsAreCounted)
{
    const Rows rows(0, 40);
    for (std::uint64_t bytes = 0; bytes < 1500; bytes += 4) {
        const std::size_t count = rows_within(rows.view(), bytes);
        if (count > 0) {
            EXPECT_LE(block_of(rows.view().slice(0, count)).bytes(), bytes);
        }
        if (count < 40) {
            EXPECT_GT(block_of(rows.view().slice(0, count + 1)).bytes(), bytes);
        }
    }
    EXPECT_EQ(rows_within(rows.view(), 1 << 20), 40U);
    EXPECT_EQ(rows_within(dense_rows(nullptr, 100, 3), 35), 2U);
    EXPECT_EQ(rows_within(dense_rows(nullptr, 2, 3), 35), 2U);
}

TEST(RowShapes, TheSameRowsAreTheSameBytes)
{
    Rows rows(0, 12);
    const Rows others(0, 12);
    EXPECT_TRUE(same_rows(rows.view(), others.view()));
    EXPECT_TRUE(same_rows(rows.view().slice(3, 5), Rows(3, 5).view()));
    EXPECT_FALSE(same_rows(rows.view().row(3), rows.view().row(8)));
    EXPECT_FALSE(same_rows(rows.view().slice(0, 11), others.view()));
    rows.weights[0] += 1;
    EXPECT_FALSE(same_rows(rows.view(), others.view()));
    RowView plain = others.view();
    plain.weights = nullptr;
    EXPECT_FALSE(same_rows(plain, others.view()));
    const float values[] = {1, 2, 1, 2};
    EXPECT_TRUE(same_rows(dense_rows(values, 1, 2), dense_rows(values + 2, 1, 2)));
    EXPECT_FALSE(same_rows(dense_rows(values, 1, 2), dense_rows(values, 2, 1)));
}

TEST(RowShapes, ABufferSortsListsByTid)
{
    RowBuffer buffer(weighted_shape());
    constexpr std::size_t each = 300;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
        threads.emplace_back([&buffer, t] {
            for (std::size_t i = each; i > 0;) {
                const std::size_t count = std::min<std::size_t>(i, 7);
                i -= count;
                const std::size_t first = t * each + i;
                std::vector<Tid> tids;
                for (std::size_t row = first; row < first + count; ++row)
                    tids.push_back({static_cast<std::uint32_t>(row), 1, 0});
                buffer.append(tids, Rows(first, count).view());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    ThreadPool pool(2);
    buffer.sort_by_tid(&pool);
    ASSERT_EQ(buffer.size(), 4 * each);
    const RowView rows = buffer.rows();
    EXPECT_EQ(offsets_fault(rows.offsets, rows.count, rows.word_count()), nullptr);
    for (std::size_t i = 0; i < rows.count; ++i) {
        ASSERT_EQ(buffer.tids()[i].block, i);
        expect_row(rows, i, i);
    }
    const float dense[2] = {1, 2};
    const Tid tid{1, 1, 0};
    EXPECT_THROW(buffer.append({&tid, 1}, dense_rows(dense, 1, 2)), BadRequest);
}

TEST(RowShapes, DenseRowsKeepTheirAttributesInOrder)
{
    IndexShape shape{};
    shape.element = ElementType::float32;
    shape.dimensions = 1;
    shape.attribute_count = 1;
    RowBuffer buffer(shape);
    for (std::uint32_t i = 500; i-- > 0;) {
        const float value = static_cast<float>(i);
        const std::uint64_t attribute = i;
        const Tid tid{i, 1, 0};
        RowView row = dense_rows(&value, 1, 1);
        row.attribute_count = 1;
        row.attributes = &attribute;
        buffer.append({&tid, 1}, row);
    }
    buffer.sort_by_tid();
    for (std::size_t i = 0; i < 500; ++i) {
        EXPECT_EQ(buffer.rows().row(i).values[0], static_cast<float>(i));
        EXPECT_EQ(buffer.rows().row(i).attributes[0], i);
    }
}

TEST(RowShapes, OwnedRowsAreThoseAppended)
{
    OwnedRows kept;
    kept.append(Rows(4, 3).view());
    kept.append(Rows(0, 9).view().slice(2, 4));
    ASSERT_EQ(kept.count(), 7U);
    const std::size_t numbers[] = {4, 5, 6, 2, 3, 4, 5};
    for (std::size_t i = 0; i < 7; ++i) expect_row(kept.view(), i, numbers[i], false);
    kept.clear();
    const float values[] = {1, 2, 3, 4};
    kept.append(dense_rows(values, 2, 2));
    EXPECT_EQ(kept.view().row(1).values[1], 4);
    EXPECT_EQ(kept.view().layout(), RowLayout::dense);
}

TEST(RowShapes, StoredListsAreCheckedWhenLoaded)
{
    const Rows rows(0, 9);
    const IndexShape shape = weighted_shape();
    const std::vector<ArrayShape> arrays = list_arrays(rows.view());
    ASSERT_EQ(arrays.size(), 3U);
    const auto fill = [&](StoredLists& lists) {
        for (const ArrayShape& array : arrays) {
            std::vector<std::byte> bytes(array.bytes());
            ASSERT_TRUE(read_list_array(rows.view(), array.name, 0, bytes));
            ASSERT_TRUE(lists.write(array.name, 0, bytes));
        }
    };
    StoredLists lists(shape, arrays);
    fill(lists);
    lists.finish_load();
    for (std::size_t i = 0; i < 9; ++i) expect_row(lists.rows(), i, i, false);
    const std::uint64_t far = 1000;
    ASSERT_TRUE(lists.write(array_list_offsets, 24, std::as_bytes(std::span(&far, 1))));
    EXPECT_THROW(lists.finish_load(), BadRequest);
    EXPECT_FALSE(lists.write("vectors", 0, {}));
    EXPECT_THROW(StoredLists(shape, std::span(arrays).first(2)), BadRequest);
}

// As a merge does, with the lists that stay and new ones.
TEST(OffsetWalk, PutsListsOfTwoSourcesTogether)
{
    std::vector<std::uint64_t> merged = {0};
    const auto append = [&merged](const std::vector<std::uint64_t>& offsets, std::size_t dead_row) {
        OffsetWalk walk{offsets.back()};
        for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
            ASSERT_TRUE(walk.next(offsets[row + 1]));
            if (row != dead_row) merged.push_back(merged.back() + walk.end - walk.begin);
        }
        EXPECT_EQ(walk.end, walk.word_count);
    };
    append({0, 2, 5, 5, 9}, 1);
    append({0, 0, 4}, 7);
    EXPECT_EQ(merged, (std::vector<std::uint64_t>{0, 2, 2, 6, 6, 10}));
}

TEST(OffsetWalk, RefusesListsThatDescendOrEndPastTheWords)
{
    OffsetWalk walk{5};
    EXPECT_TRUE(walk.next(2));
    EXPECT_FALSE(walk.next(1));
    EXPECT_FALSE(walk.next(6));
    EXPECT_TRUE(walk.next(5));
    EXPECT_EQ(walk.begin, 2U);
    EXPECT_EQ(walk.end, 5U);
}

}  // namespace
}  // namespace pgwarp
