#include "rows/sent_filters.h"

#include <algorithm>

namespace pgwarp::cuda::rows
{

namespace
{

bool are_the_same(PredicateWords a, PredicateWords b)
{
    return a.data() == b.data() && a.size() == b.size();
}

}  // namespace

SentFilters::SentFilters(const AttributeView& attributes, std::span<const PredicateWords> predicates)
    : attributes_(attributes), predicates_(predicates)
{
    begins_.reserve(predicates.size());
    for (std::size_t i = 0; i < predicates.size(); ++i) {
        if (i > 0 && are_the_same(predicates[i], predicates[i - 1])) {
            begins_.push_back(begins_.back());
            continue;
        }
        // A predicate without words is sent as one without terms.
        const std::size_t own = std::max<std::size_t>(predicates[i].size(), 1);
        if (i > 0 && words_ + own > most_sent_words) return;
        begins_.push_back(static_cast<std::uint32_t>(words_));
        words_ += own;
    }
}

std::size_t SentFilters::bytes() const
{
    if (begins_.empty()) return 0;
    return carved_bytes([&](Carver& memory) { lay_out(memory); });
}

void SentFilters::write(std::byte* to, ThreadPool& pool) const
{
    Carver memory(to);
    const Space space = lay_out(memory);
    std::copy(begins_.begin(), begins_.end(), space.begins);
    constexpr std::size_t words_of_task = std::size_t{1} << 15;
    const std::size_t of_predicate = words_ / std::max<std::size_t>(begins_.size(), 1) + 1;
    pool.parallel_for(begins_.size(), words_of_task / of_predicate + 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (i > 0 && begins_[i] == begins_[i - 1]) continue;
            std::uint64_t* const words = space.words + begins_[i];
            if (predicates_[i].empty()) *words = 0;
            std::copy(predicates_[i].begin(), predicates_[i].end(), words);
        }
    });
}

FilterView SentFilters::view(std::byte* sent) const
{
    if (begins_.empty()) return {};
    Carver memory(sent);
    const Space space = lay_out(memory);
    return {attributes_.codes, space.words, space.begins, attributes_.columns};
}

}  // namespace pgwarp::cuda::rows
