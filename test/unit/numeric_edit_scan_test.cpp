// Edit distances of many rows by SIMD against the scalar form, by every instruction set.
#include "numeric/edit_scan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "edit_reference.h"
#include "numeric_reference.h"

namespace pgwarp::test
{
namespace
{

// Texts as rows.
struct Texts {
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> words;

    void add(const Characters& text)
    {
        const std::vector<std::uint32_t> row = packed(text);
        words.insert(words.end(), row.begin(), row.end());
        offsets.push_back(words.size());
    }
    RowView view() const
    {
        RowView rows;
        rows.count = offsets.size() - 1;
        rows.offsets = offsets.data();
        rows.words = words.data();
        return rows;
    }
};

void compare(EditKind kind, const Characters& pattern, const Texts& texts, std::uint32_t at_most)
{
    const std::vector<std::uint32_t> words = packed(pattern);
    std::vector<std::uint64_t> memory(EditPattern::memory_words(view_text(words)));
    const EditPattern scalar(view_text(words), kind, memory.data());
    const EditScan scan(view_text(words), kind);
    const RowView rows = texts.view();
    std::vector<std::uint32_t> ids(rows.count);
    std::iota(ids.rbegin(), ids.rend(), 0U);
    std::vector<std::uint32_t> found(rows.count, 0x77777777U);
    scan.distances(rows, ids, at_most, found);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::uint32_t wanted = scalar.distance(view_text(rows.list(ids[i])));
        ASSERT_TRUE(wanted <= at_most ? found[i] == wanted : found[i] > at_most && found[i] != 0x77777777U)
            << "pattern of " << pattern.size() << ", at most " << at_most << ", row " << ids[i] << ": " << found[i]
            << " for " << wanted;
    }
}

void compare(const Characters& pattern, const Texts& texts, std::uint32_t at_most)
{
    for (const EditKind kind : {EditKind::levenshtein, EditKind::transpositions, EditKind::substring})
        compare(kind, pattern, texts, at_most);
}

// Row numbers and lengths that fill no batch, whole ones, and more; rows of all widths beside each other.
TEST(EditScan, AgreesWithTheScalarForm)
{
    constexpr std::uint32_t lengths[] = {0,  1,  2,  15,  16,  17,  31,  32,  33,  47,  63,
                                         64, 65, 70, 127, 128, 129, 192, 193, 256, 257, 300};
    reference::for_each_target([&](const char* target) {
        SCOPED_TRACE(target);
        std::mt19937 random(5);
        for (const std::uint32_t length : lengths) {
            for (int round = 0; round < 8; ++round) {
                const Alphabet alphabet(random);
                const Characters pattern = alphabet.text(random, length);
                Texts texts;
                for (std::uint32_t i = random() % 70; i > 0; --i) {
                    if (random() % 4 == 0) texts.add(Alphabet(random).text(random, random() % 100));
                    if (random() % 4 == 0) texts.add(alphabet.text(random, length));
                    texts.add(alphabet.edited(random, pattern, random() % 20));
                }
                for (const std::uint32_t at_most : {no_edit_limit, no_edit_limit - 1, 0U, 3U, 10U, 40U})
                    compare(pattern, texts, at_most);
            }
        }
    });
}

TEST(EditScan, ManyWideCharacters)
{
    std::mt19937 random(6);
    for (const std::uint32_t length : {30U, 64U, 256U}) {
        Characters pattern(length);
        for (std::uint32_t i = 0; i < length; ++i) pattern[i] = 0x4e00 + 37 * i;
        Texts texts;
        for (int i = 0; i < 40; ++i) {
            Characters text = Alphabet(random).edited(random, pattern, 5);
            if (i % 3 == 0) text.push_back(0x1f600);
            texts.add(text);
        }
        compare(pattern, texts, no_edit_limit);
        compare(pattern, texts, 5);
    }
}

TEST(EditScan, NoRows)
{
    compare({'a', 'b'}, Texts(), no_edit_limit);
}

TEST(EditScan, LongRows)
{
    std::mt19937 random(7);
    const Alphabet alphabet(random);
    Texts texts;
    for (const std::uint32_t length : {5U, 40000U, max_text_characters, 70U}) texts.add(alphabet.text(random, length));
    for (const std::uint32_t length : {10U, 20U, 60U, 100U}) {
        compare(alphabet.text(random, length), texts, no_edit_limit);
        compare(alphabet.text(random, length), texts, 39990);
    }
}

}  // namespace
}  // namespace pgwarp::test
