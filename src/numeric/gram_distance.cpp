#include "numeric/gram_distance.h"

#include <algorithm>

namespace pgwarp
{

namespace
{

using Characters = std::array<std::uint32_t, distance_gram>;

constexpr std::uint32_t mark = 0xffffffff;  // beside the text; no character

// Calls take() with each gram of the text.
template <class Take>
void for_grams(const TextView& text, const Take& take)
{
    Characters gram;
    gram.fill(mark);
    for (std::uint32_t i = 0; i < distance_grams(text.length); ++i) {
        std::move(gram.begin() + 1, gram.end(), gram.begin());
        gram.back() = i < text.length ? text[i] : mark;
        take(gram);
    }
}

}  // namespace

std::size_t GramPattern::memory_words(const TextView& pattern)
{
    return (distance_grams(pattern.length) * sizeof(Gram) + 7) / 8;
}

GramPattern::GramPattern(const TextView& pattern, std::uint64_t* memory)
    : length_(pattern.length), grams_(reinterpret_cast<Gram*>(memory))
{
    std::uint32_t all = 0;
    for_grams(pattern, [&](const Characters& gram) { grams_[all++] = {gram, 1, 0}; });
    std::sort(grams_, grams_ + all, [](const Gram& a, const Gram& b) { return a.characters < b.characters; });
    for (std::uint32_t i = 0; i < all; ++i) {
        if (count_ > 0 && grams_[count_ - 1].characters == grams_[i].characters) {
            ++grams_[count_ - 1].count;
        } else {
            grams_[count_++] = grams_[i];
        }
    }
}

double GramPattern::distance(const TextView& text) const
{
    for (std::uint32_t i = 0; i < count_; ++i) grams_[i].left = grams_[i].count;
    std::uint32_t common = 0;
    for_grams(text, [&](const Characters& gram) {
        const Gram* found = std::lower_bound(grams_, grams_ + count_, gram,
                                             [](const Gram& a, const Characters& b) { return a.characters < b; });
        if (found == grams_ + count_ || found->characters != gram || found->left == 0) return;
        --found->left;
        ++common;
    });
    return gram_distance(length_, text.length, common);
}

}  // namespace pgwarp
