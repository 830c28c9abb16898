// The keywords of a text.
#include "methods/matchcount/grams.h"

#include <algorithm>

#include "numeric/hash.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::uint64_t mark = 0xffffffff;  // beside the text; no character

// The hash of the n characters from `at` on; before the first and after the last come marks.
std::uint32_t hash_gram(const TextView& text, std::int64_t at, const GramForm& form)
{
    std::uint64_t hash = 0;
    for (std::int64_t i = at; i < at + form.n; ++i) {
        const bool inside = i >= 0 && i < text.length;
        hash = mix_hash(hash ^ (inside ? text[static_cast<std::size_t>(i)] : mark));
    }
    return static_cast<std::uint32_t>(hash >> (64 - form.bits));
}

}  // namespace

void append_grams(const TextView& text, const GramForm& form, std::vector<std::uint32_t>& keywords)
{
    const auto first = static_cast<std::ptrdiff_t>(keywords.size());
    const std::int64_t before = std::int64_t{form.n} - 1;
    for (std::int64_t at = -before; at < text.length; ++at) keywords.push_back(hash_gram(text, at, form));
    std::sort(keywords.begin() + first, keywords.end());

    std::uint32_t gram = 0;
    std::uint32_t ordinal = 0;
    for (std::size_t i = static_cast<std::size_t>(first); i < keywords.size(); ++i) {
        const bool repeated = i > static_cast<std::size_t>(first) && keywords[i] == gram;
        gram = keywords[i];
        ordinal = repeated ? ordinal + 1 : 0;
        if (ordinal == 0) continue;
        keywords[i] = static_cast<std::uint32_t>(mix_hash(std::uint64_t{ordinal} << 32 | gram) >> (64 - form.bits));
    }
}

}  // namespace pgwarp::matchcount
