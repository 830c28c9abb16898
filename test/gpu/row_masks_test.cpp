// Masks of rows: bit by bit those that the predicates tell on the CPU.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "device/error.h"
#include "device/wait.h"
#include "distance/mask_place.h"
#include "predicate_fixture.h"
#include "rows/row_masks.h"
#include "sent_array.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

using cuda::Context;
using cuda::DeviceArray;
using cuda::rows::PredicateWords;

struct Case {
    std::uint32_t rows;
    std::uint32_t group;  // of the order
    std::uint32_t columns;
    std::uint64_t values;
    std::size_t predicates;
    bool with_spans;
    bool with_dead;
};

std::vector<Predicate> some_predicates(const Case& one, std::mt19937_64& random)
{
    std::vector<Predicate> own;
    while (own.size() < one.predicates) {
        Predicate predicate;
        for (std::uint32_t column = 0; column < one.columns; ++column)
            if (random() % 3 == 0) predicate.where(column, random_ranges(random, one.values));
        own.push_back(predicate);
    }
    return own;
}

std::vector<cuda::rows::CodeSpan> spans_of(const std::vector<std::uint64_t>& codes, std::uint32_t columns)
{
    std::vector<cuda::rows::CodeSpan> spans(columns, {~std::uint64_t{0}, 0});
    for (std::size_t i = 0; i < codes.size(); ++i) {
        spans[i % columns].first = std::min(spans[i % columns].first, codes[i]);
        spans[i % columns].last = std::max(spans[i % columns].last, codes[i]);
    }
    return spans;
}

void expect_masks(const Case& one)
{
    using namespace cuda::rows;
    SCOPED_TRACE(testing::Message() << one.rows << " rows, groups of " << one.group << ", " << one.columns
                                    << " columns, " << one.predicates << " predicates");
    std::mt19937_64 random(one.rows + one.predicates);
    const Context::Lease lease(shared_context().lease(cuda::Priority::search));
    const std::vector<std::uint64_t> codes = random_attributes(one.rows, one.columns, one.values, one.columns);
    const auto spans = spans_of(codes, one.columns);
    const std::vector<Predicate> own = some_predicates(one, random);
    std::vector<PredicateWords> words;
    for (const Predicate& predicate : own) words.emplace_back(predicate);
    words.emplace_back();  // all rows pass
    std::vector<std::uint64_t> dead((one.rows + 63) / 64);
    for (std::uint64_t& word : dead) word = random() & random();

    const DeviceArray<std::uint64_t> device_codes = sent(codes, lease);
    const DeviceArray<std::uint64_t> device_dead = sent(dead, lease);
    const AttributeView attributes{device_codes.data(), one.columns, one.with_spans ? spans.data() : nullptr};
    const DistinctFilters filters(attributes, words);
    ASSERT_EQ(filters.of_query().size(), words.size());
    MaskedRows rows;
    rows.order = cuda::make_row_order(one.rows, one.group);
    rows.padded_positions = (rows.order.positions() + 127) / 128 * 128;
    rows.dead = one.with_dead ? device_dead.data() : nullptr;
    const auto slots = static_cast<std::uint32_t>((words.size() + 63) / 64 * 64);
    cuda::Carver sizes;
    take_mask_space(sizes, filters, rows.padded_positions, slots, false);
    DeviceArray<std::byte> memory(shared_context().pool(), sizes.used(), "test", lease);
    cuda::check(cudaMemsetAsync(memory.data(), 0xff, memory.bytes(), lease), "filling");
    cuda::PinnedArray<std::byte> host(sizes.used());
    cuda::Carver on_host(host.data());
    const MaskSpace written = take_mask_space(on_host, filters, rows.padded_positions, slots, true);
    ThreadPool pool(2);
    write_masks(filters, slots, written, pool);
    cuda::check(cudaMemcpyAsync(memory.data(), host.data(), written.written, cudaMemcpyHostToDevice, lease), "sending");
    cuda::Carver carver(memory.data());
    const MaskSpace space = take_mask_space(carver, filters, rows.padded_positions, slots, false);
    make_masks(rows, attributes, filters, space, shared_context().multiprocessors(), lease);
    std::vector<std::uint32_t> masks(std::size_t{filters.count()} * rows.width());
    cuda::read_back(masks.data(), space.words, masks.size() * sizeof(masks[0]), lease, "reading");

    std::size_t wrong = 0;
    for (std::size_t q = 0; q < words.size(); ++q) {
        const std::uint32_t* mask = masks.data() + std::size_t{filters.of_query()[q]} * rows.width();
        for (std::uint32_t position = 0; position < rows.padded_positions; ++position) {
            const std::uint32_t row = rows.order.row_of(position);
            bool right = row < one.rows;
            if (right && one.with_dead) right = ((dead[row / 64] >> (row % 64)) & 1U) == 0;
            if (right && !words[q].empty()) right = passes(words[q], codes.data() + std::size_t{row} * one.columns);
            const cuda::MaskPlace place = cuda::mask_place(position);
            ASSERT_EQ(cuda::masked_position(place.word, place.bit), position);
            wrong += (((mask[place.word] >> place.bit) & 1U) != 0) != right ? 1 : 0;
        }
    }
    EXPECT_EQ(wrong, 0U);
}

TEST(RowMasks, FewRows)
{
    for (const std::uint32_t rows : {1U, 2U, 31U, 32U, 127U, 128U, 129U, 1000U})
        for (const std::uint32_t group : {1U, 128U})
            for (const std::size_t predicates : {0U, 1U, 31U, 32U, 70U})
                expect_masks({rows, group, 3, 50, predicates, true, rows % 2 == 0});
}

TEST(RowMasks, MoreColumnsThanTables)
{
    for (const std::uint32_t columns : {1U, 2U, 5U, 9U, 20U})
        for (const bool with_spans : {false, true})
            for (const bool with_dead : {false, true}) expect_masks({3001, 1, columns, 900, 65, with_spans, with_dead});
}

TEST(RowMasks, ManyPredicates)
{
    expect_masks({517, 1, 4, 16384, 1025, true, true});
    expect_masks({517, 1, 4, 16385, 3000, true, false});
    expect_masks({4099, 1, 4, std::uint64_t{1} << 40, 1500, true, true});
}

}  // namespace
}  // namespace pgwarp::test
