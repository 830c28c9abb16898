// The search of the few texts that the device leaves to the host.
#include <gtest/gtest.h>

#include "matchcount/host_scan.h"
#include "methods/ordered_scan.h"
#include "text_fixture.h"

namespace pgwarp::cuda
{
namespace
{

using test::Text;

TEST(TextHostScan, FindsTheFirstInOrder)
{
    std::mt19937 random(1);
    ThreadPool pool(3);
    for (int run = 0; run < 100; ++run) {
        std::vector<Text> texts;
        const std::size_t count = run % 10 == 0 ? 5000 : random() % 50;
        const std::size_t longest = run % 10 == 0 ? 12 : 90;
        while (texts.size() < count) texts.push_back(test::random_text(random, random() % (longest + 1), 3));
        const pgwarp::matchcount::TextsByLength by_length(test::text_rows(texts).view(), pool);
        std::vector<std::uint64_t> dead((count + 63) / 64);
        for (std::uint64_t& word : dead) word = random() & random();
        const Text text = test::random_text(random, random() % 20, 3);
        const std::vector<std::uint32_t> words = test::packed(text);

        HostQuery query;
        query.text = view_text(words);
        query.k = 1 + random() % 20;
        query.dead = dead;
        if (run % 3 == 0) query.after = {static_cast<double>(random() % 12), static_cast<std::uint32_t>(random() % 50)};
        if (run % 4 == 0) query.within = static_cast<std::uint32_t>(random() % 12);
        FirstRows wanted(query.k);
        for (std::uint32_t row = 0; row < count; ++row) {
            const RowResult result{static_cast<double>(test::plain_distance(text, texts[row])), row};
            if (result.distance > query.within) continue;
            if (!bit_is_set(dead, row) && comes_before(query.after, result)) wanted.offer(result);
        }
        const std::vector<RowResult> expected = wanted.take_sorted();
        const std::vector<RowResult> found = scan_texts(by_length, query, pool);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_EQ(found[i].distance, expected[i].distance);
            ASSERT_EQ(found[i].row, expected[i].row);
        }
    }
}

TEST(TextHostScan, CancelledScansThrow)
{
    const pgwarp::matchcount::TextsByLength texts(test::text_rows({U"a"}).view(), caller_alone());
    CancelToken cancel;
    cancel.cancel();
    const std::vector<std::uint32_t> words = test::packed(U"b");
    HostQuery query;
    query.text = view_text(words);
    query.k = 1;
    query.cancel = &cancel;
    EXPECT_THROW(scan_texts(texts, query, caller_alone()), Cancelled);
}

TEST(TextHostScan, ComparesTexts)
{
    const OwnedRows query = test::text_rows({U"kitten"});
    const OwnedRows rows = test::text_rows({U"sitting", U"kitten", U""});
    std::vector<double> distances(3);
    compare_texts(query.view(), rows.view(), distances);
    EXPECT_EQ(distances, (std::vector<double>{3, 0, 6}));
}

}  // namespace
}  // namespace pgwarp::cuda
