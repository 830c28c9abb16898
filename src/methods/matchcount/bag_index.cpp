// The making of the mirror of bags, and its statistics.
#include "methods/matchcount/bag_index.h"

#include <algorithm>
#include <ranges>

namespace pgwarp::matchcount
{

namespace
{

// Returns the first list that begins at a posting or behind it.
std::size_t list_from(const KeywordLists& lists, std::uint64_t posting)
{
    const auto numbers = std::views::iota(std::size_t{0}, lists.list_count());
    const auto before = [&](std::size_t number) { return lists.start(number) < posting; };
    return static_cast<std::size_t>(std::ranges::partition_point(numbers, before) - numbers.begin());
}

// Writes the frequencies of the postings of lists [first, last): rows come in order, so each posting has the next place
// of its list.
void write_frequencies(const RowView& rows, const RankedRows& ranked, std::size_t first, std::size_t last,
                       BagIndex& index)
{
    std::vector<std::uint64_t> next(last - first);
    for (std::size_t number = first; number < last; ++number) next[number - first] = index.lists.start(number);
    const std::uint32_t* const words = rows.words + rows.offsets[0];
    for (std::size_t row = 0; row < rows.count; ++row) {
        const std::uint32_t* const end = ranked.keywords.data() + ranked.offsets[row + 1];
        const std::uint32_t* at = ranked.keywords.data() + ranked.offsets[row];
        for (at = std::lower_bound(at, end, first); at != end && *at < last; ++at) {
            const auto place = static_cast<std::size_t>(at - ranked.keywords.data());
            const std::uint64_t number = part_number(words + place * bag_words);
            index.frequencies[next[*at - first]++] = static_cast<std::uint8_t>(frequency_of(number));
        }
    }
}

// Each thread writes the frequencies of neighbouring lists.
void write_all_frequencies(const RowView& rows, const RankedRows& ranked, ThreadPool& pool, BagIndex& index)
{
    constexpr std::uint64_t least = 1 << 18;  // postings of a thread
    const std::uint64_t postings = index.lists.postings();
    const std::uint64_t pieces = std::clamp<std::uint64_t>(postings / least, 1, pool.threads());
    index.frequencies.resize(postings);
    pool.parallel_for(pieces, 1, [&](std::size_t begin, std::size_t end) {
        const std::size_t first = list_from(index.lists, postings * begin / pieces);
        const std::size_t last =
            end == pieces ? index.lists.list_count() : list_from(index.lists, postings * end / pieces);
        write_frequencies(rows, ranked, first, last, index);
    });
}

void write_lengths(const RowView& rows, BagIndex& index)
{
    index.lengths.resize(rows.count);
    for (std::size_t row = 0; row < rows.count; ++row) {
        const std::uint64_t length = length_of_bag(rows.list(row));
        index.lengths[row] = static_cast<std::uint32_t>(length);
        index.total_length += length;
    }
}

void write_impacts(ThreadPool& pool, BagIndex& index)
{
    const std::size_t postings = index.lists.postings();
    const std::span<const std::uint32_t> rows = index.lists.lists(KeywordLists::Numbers{0, index.lists.list_count()});
    index.impacts.resize((postings + postings_of_block - 1) / postings_of_block);
    pool.parallel_for(index.impacts.size(), 1024, [&](std::size_t begin, std::size_t end) {
        for (std::size_t block = begin; block < end; ++block) {
            Impact impact;
            const std::size_t last = std::min((block + 1) * postings_of_block, postings);
            for (std::size_t i = block * postings_of_block; i < last; ++i)
                impact.take(index.frequencies[i], index.lengths[rows[i]]);
            index.impacts[block] = impact;
        }
    });
}

}  // namespace

void Impact::take(std::uint32_t other_frequency, std::uint32_t other_length)
{
    frequency = std::max(frequency, other_frequency);
    length = std::min(length, other_length);
}

std::uint64_t BagIndex::memory_bytes() const
{
    return dictionary.memory_bytes() + lists.memory_bytes() + frequencies.size() + impacts.size() * sizeof(Impact) +
           lengths.size() * sizeof(std::uint32_t);
}

BagIndex make_bag_index(const RowView& rows, ThreadPool& pool)
{
    RankedRows ranked = rank_parts(rows, ElementType::bag, pool);
    BagIndex index{{}, KeywordLists(ranked.rows(), pool), {}, {}, {}, 0};
    write_lengths(rows, index);
    write_all_frequencies(rows, ranked, pool, index);
    write_impacts(pool, index);
    index.dictionary = std::move(ranked.dictionary);
    return index;
}

TermCounts count_terms_of(const BagIndex& index, std::span<const std::uint64_t> terms)
{
    TermCounts counts{index.lists.rows(), index.total_length, {}};
    for (const std::uint64_t term : terms)
        counts.of_terms.push_back(index.lists.lists(index.dictionary.find(no_name, term, term)).size());
    return counts;
}

}  // namespace pgwarp::matchcount
