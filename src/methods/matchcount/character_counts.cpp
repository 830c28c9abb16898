// The counts of characters.
#include "methods/matchcount/character_counts.h"

namespace pgwarp::matchcount
{

CharacterCounts::Counts CharacterCounts::of(const TextView& text)
{
    Counts counts{};
    for (std::uint32_t i = 0; i < text.length; ++i) ++counts[text[i] % groups];
    return counts;
}

CharacterCounts::CharacterCounts(const TextsByLength& texts, ThreadPool& pool)
    : counts_(texts.first_of_length(most_characters + 1))
{
    pool.parallel_for(counts_.size(), 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t place = begin; place < end; ++place)
            counts_[place] = of(texts.text(static_cast<std::uint32_t>(place)));
    });
}

}  // namespace pgwarp::matchcount
