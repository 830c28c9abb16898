// Counts terms in the index, in parts of the delta, and in delta rows one by one.
#include "engine/search/term_counts.h"

#include <algorithm>
#include <bit>

#include "protocol/bag_rows.h"

namespace pgwarp
{

namespace
{

constexpr double look_up_cost = 128;  // of a term in a dictionary

std::vector<std::uint64_t> terms_of(const RowView& query)
{
    const BagQuery words{query.list(0)};
    std::vector<std::uint64_t> terms(words.terms());
    for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = words.term(i);
    return terms;
}

void add_counts(const TermCounts& more, TermCounts& counts)
{
    counts.rows += more.rows;
    counts.length += more.length;
    for (std::size_t i = 0; i < counts.of_terms.size(); ++i) counts.of_terms[i] += more.of_terms[i];
}

// `terms` are ascending, as the bag's. Those between two of a bag's terms are passed one by one, or, where they are
// many, by a search.
void add_bag(std::span<const std::uint32_t> bag, std::span<const std::uint64_t> terms, TermCounts& counts)
{
    ++counts.rows;
    const bool many = terms.size() > bag.size();
    std::size_t i = 0;
    for (std::size_t at = 0; at < bag.size(); at += bag_words) {
        const std::uint64_t number = part_number(bag.data() + at);
        counts.length += frequency_of(number);
        if (many) i += std::ranges::lower_bound(terms.subspan(i), term_of(number)) - terms.subspan(i).begin();
        while (i < terms.size() && terms[i] < term_of(number)) ++i;
        if (i < terms.size() && terms[i] == term_of(number)) ++counts.of_terms[i];
    }
}

}  // namespace

TermCounts count_terms(const Mirror& mirror, const MirrorSnapshot& snapshot, const RowView& query,
                       const CancelToken* cancel)
{
    const std::vector<std::uint64_t> terms = terms_of(query);
    TermCounts counts = mirror.searcher().count_terms(terms);
    for (const PartView& part : snapshot.parts) add_counts(part.part->searcher->count_terms(terms), counts);
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        for_each_chunk(snapshot.logs[log], snapshot.first_plain(log),
                       [&](std::uint64_t, const Tid*, const RowView& rows) {
                           if (cancel != nullptr) cancel->check();
                           for (std::size_t i = 0; i < rows.count; ++i) add_bag(rows.list(i), terms, counts);
                       });
    }
    return counts;
}

double cost_of_counts(const MirrorSnapshot& snapshot, const RowView& query)
{
    const std::size_t terms = BagQuery{query.list(0)}.terms();
    std::uint64_t words = 0;
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        for_each_chunk(
            snapshot.logs[log], snapshot.first_plain(log),
            [&](std::uint64_t, const Tid*, const RowView& rows) { words += rows.word_count() + rows.count; });
    }
    const double of_term = look_up_cost * static_cast<double>(snapshot.parts.size() + 1);
    return of_term * static_cast<double>(terms) +
           static_cast<double>(words * std::max<std::uint64_t>(2, std::bit_width(terms)));
}

}  // namespace pgwarp
