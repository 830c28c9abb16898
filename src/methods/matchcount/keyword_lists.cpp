// The construction of the inverted index, and its lookups. Postings are distributed to parts by the first bits of their
// keywords; then each part is sorted by itself, in the cache where keywords are hashed.
#include "methods/matchcount/keyword_lists.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace pgwarp::matchcount
{

namespace
{

struct Posting {
    std::uint32_t keyword;
    std::uint32_t row;
    bool operator==(const Posting&) const = default;
};

constexpr unsigned digit_bits = 11;
constexpr std::size_t digits = std::size_t{1} << digit_bits;

// Sorts postings by the lowest `bits` bits of the keyword. Equal keywords stay in order.
void sort_by_keyword(std::span<Posting> postings, unsigned bits, BulkVector<Posting>& scratch)
{
    if (postings.size() < digits / 4) {
        std::stable_sort(postings.begin(), postings.end(),
                         [](const Posting& a, const Posting& b) { return a.keyword < b.keyword; });
        return;
    }
    scratch.resize(std::max(scratch.size(), postings.size()));
    std::span<Posting> from = postings;
    std::span<Posting> to(scratch.data(), postings.size());
    for (unsigned shift = 0; shift < bits; shift += digit_bits) {
        std::uint64_t next[digits + 1] = {};
        const auto digit = [&](const Posting& posting) { return (posting.keyword >> shift) % digits; };
        for (const Posting& posting : from) ++next[digit(posting) + 1];
        for (std::size_t i = 1; i < digits; ++i) next[i] += next[i - 1];
        for (const Posting& posting : from) to[next[digit(posting)]++] = posting;
        std::swap(from, to);
    }
    if (from.data() != postings.data()) std::copy(from.begin(), from.end(), postings.begin());
}

// Rows in chunks of about as many postings, for the threads of a pool.
std::vector<std::size_t> chunks_of_rows(const KeywordRows& rows, std::uint64_t postings, ThreadPool& pool)
{
    const std::uint64_t chunks = std::clamp<std::uint64_t>(postings / items_at_a_time(sizeof(Posting)), 1,
                                                           pool.threads() == 1 ? 1 : pool.threads() * 4);
    std::vector<std::size_t> bounds{0};
    for (std::uint64_t chunk = 1; chunk < chunks; ++chunk) {
        const std::uint64_t offset = rows.offsets.front() + postings * chunk / chunks;
        const auto at = std::lower_bound(rows.offsets.begin(), rows.offsets.end() - 1, offset);
        bounds.push_back(static_cast<std::size_t>(at - rows.offsets.begin()));
    }
    bounds.push_back(rows.offsets.size() - 1);
    return bounds;
}

// Parts of the universe in ascending order, by the first bits of the keyword.
struct Parts {
    std::vector<std::size_t> chunks;                 // bounds, of rows
    std::vector<std::vector<std::uint64_t>> places;  // [chunk][part]: the chunk's next posting, in (keyword, row) order
    std::vector<std::uint64_t> starts;               // the first posting of each part; one more at the end
    unsigned sorted_bits = 0;                        // the lowest bits of keywords, in which those of a part differ
    std::uint32_t largest_keyword = 0;

    std::size_t count() const { return starts.size() - 1; }
    std::size_t of(std::uint32_t keyword) const { return std::uint64_t{keyword} >> sorted_bits; }
};

// Calls body(chunk) for each chunk of rows, on the threads of the pool.
template <class Body>
void for_chunks(std::span<const std::size_t> chunks, ThreadPool& pool, const Body& body)
{
    pool.parallel_for(chunks.size() - 1, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t chunk = begin; chunk < end; ++chunk) body(chunk);
    });
}

std::uint32_t largest_keyword(const KeywordRows& rows, std::span<const std::size_t> chunks, ThreadPool& pool)
{
    std::vector<std::uint32_t> largest(chunks.size() - 1);
    for_chunks(chunks, pool, [&](std::size_t chunk) {
        std::uint32_t found = 0;
        for (std::uint64_t i = rows.offsets[chunks[chunk]]; i < rows.offsets[chunks[chunk + 1]]; ++i)
            found = std::max(found, rows.keywords[i]);
        largest[chunk] = found;
    });
    return *std::max_element(largest.begin(), largest.end());
}

// Counts the postings of each part.
Parts make_parts(const KeywordRows& rows, std::uint64_t postings, ThreadPool& pool)
{
    Parts parts;
    parts.chunks = chunks_of_rows(rows, postings, pool);
    parts.largest_keyword = largest_keyword(rows, parts.chunks, pool);
    const auto bits = static_cast<unsigned>(std::bit_width(parts.largest_keyword));
    const bool few = postings < digits * 16;
    parts.sorted_bits = few ? bits : bits - std::min(bits, digit_bits);
    parts.places.resize(parts.chunks.size() - 1);
    for_chunks(parts.chunks, pool, [&](std::size_t chunk) {
        std::vector<std::uint64_t> counts(parts.of(parts.largest_keyword) + 1);
        for (std::uint64_t i = rows.offsets[parts.chunks[chunk]]; i < rows.offsets[parts.chunks[chunk + 1]]; ++i)
            ++counts[parts.of(rows.keywords[i])];
        parts.places[chunk] = std::move(counts);
    });
    std::uint64_t place = 0;
    for (std::size_t part = 0; part < parts.places[0].size(); ++part) {
        parts.starts.push_back(place);
        for (std::vector<std::uint64_t>& chunk : parts.places) {
            place += chunk[part];
            chunk[part] = place - chunk[part];
        }
    }
    parts.starts.push_back(place);
    return parts;
}

// Copies the postings of parts [begin, end) to out[], each part by row.
void copy_parts(const KeywordRows& rows, Parts& parts, std::size_t begin, std::size_t end, Posting* out,
                ThreadPool& pool)
{
    const std::uint64_t start = parts.starts[begin];
    for_chunks(parts.chunks, pool, [&](std::size_t chunk) {
        std::vector<std::uint64_t>& places = parts.places[chunk];
        for (std::size_t row = parts.chunks[chunk]; row < parts.chunks[chunk + 1]; ++row) {
            for (std::uint64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
                const std::size_t part = parts.of(rows.keywords[i]);
                if (part - begin >= end - begin) continue;
                out[places[part]++ - start] = {rows.keywords[i], static_cast<std::uint32_t>(row)};
            }
        }
    });
}

// The lists of a part.
struct PartLists {
    std::vector<std::uint32_t> keywords;
    std::vector<std::uint64_t> starts;
    std::uint32_t most_repeats = 0;
};

// Writes the rows of sorted postings, the first of which has the number `start`, to out[].
PartLists write_lists(std::span<const Posting> sorted, std::uint64_t start, std::uint32_t* out)
{
    PartLists lists;
    std::uint32_t repeats = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        repeats = i > 0 && sorted[i] == sorted[i - 1] ? repeats + 1 : 1;
        lists.most_repeats = std::max(lists.most_repeats, repeats);
        if (i == 0 || sorted[i].keyword != sorted[i - 1].keyword) {
            lists.keywords.push_back(sorted[i].keyword);
            lists.starts.push_back(start + i);
        }
        out[i] = sorted[i].row;
    }
    return lists;
}

// Writes the list array. Only some parts at a time are copied and sorted: a fourth of all postings, or one part, so
// that this takes less memory than the list array.
std::vector<PartLists> sort_parts(const KeywordRows& rows, Parts& parts, std::uint32_t* list_array, ThreadPool& pool)
{
    std::uint64_t at_a_time = parts.starts.back() / 4;
    for (std::size_t part = 0; part < parts.count(); ++part)
        at_a_time = std::max(at_a_time, parts.starts[part + 1] - parts.starts[part]);
    BulkVector<Posting> postings(at_a_time);
    std::vector<PartLists> lists(parts.count());
    for (std::size_t first = 0; first < parts.count();) {
        const std::uint64_t start = parts.starts[first];
        std::size_t last = first + 1;
        while (last < parts.count() && parts.starts[last + 1] - start <= at_a_time) ++last;
        copy_parts(rows, parts, first, last, postings.data(), pool);
        pool.parallel_for(last - first, 1, [&](std::size_t begin, std::size_t end) {
            BulkVector<Posting> scratch;
            for (std::size_t part = first + begin; part < first + end; ++part) {
                const std::uint64_t place = parts.starts[part];
                const std::span<Posting> sorted(postings.data() + (place - start), parts.starts[part + 1] - place);
                sort_by_keyword(sorted, parts.sorted_bits, scratch);
                lists[part] = write_lists(sorted, place, list_array + place);
            }
        });
        first = last;
    }
    return lists;
}

// Whether a position array over the universe takes less than half of the list array's memory, or all keywords occur.
bool is_dense(std::uint64_t universe, std::uint64_t postings, std::span<const PartLists> parts)
{
    std::uint64_t occurring = 0;
    for (const PartLists& part : parts) occurring += part.keywords.size();
    return occurring == universe || universe * sizeof(std::uint64_t) <= postings * sizeof(std::uint32_t) / 2;
}

// Returns the start of the list of each keyword of the universe, and the number of postings.
BulkVector<std::uint64_t> positions_by_keyword(std::span<const PartLists> parts, std::uint64_t universe,
                                               std::uint64_t postings)
{
    BulkVector<std::uint64_t> positions;
    positions.reserve(universe + 1);
    for (const PartLists& part : parts)
        for (std::size_t i = 0; i < part.keywords.size(); ++i) positions.resize(part.keywords[i] + 1, part.starts[i]);
    positions.resize(universe + 1, postings);
    return positions;
}

template <class Value>
BulkVector<Value> concatenated(std::span<const PartLists> parts, std::vector<Value> PartLists::*values)
{
    std::size_t size = 0;
    for (const PartLists& part : parts) size += (part.*values).size();
    BulkVector<Value> all;
    all.reserve(size + 1);
    for (const PartLists& part : parts) all.insert(all.end(), (part.*values).begin(), (part.*values).end());
    return all;
}

}  // namespace

KeywordLists::KeywordLists(const KeywordRows& rows, ThreadPool& pool)
{
    positions_ = {0};
    if (rows.offsets.size() < 2) return;
    rows_ = static_cast<std::uint32_t>(rows.offsets.size() - 1);
    for (std::size_t row = 0; row < rows_; ++row)
        longest_row_ = std::max(longest_row_, static_cast<std::uint32_t>(rows.offsets[row + 1] - rows.offsets[row]));
    Parts parts = make_parts(rows, rows.offsets.back() - rows.offsets.front(), pool);
    list_array_.resize(parts.starts.back());
    const std::vector<PartLists> lists = sort_parts(rows, parts, list_array_.data(), pool);
    for (const PartLists& part : lists) most_repeats_ = std::max(most_repeats_, part.most_repeats);
    const std::uint64_t universe = std::uint64_t{parts.largest_keyword} + 1;
    dense_ = is_dense(universe, postings(), lists);
    if (dense_) {
        positions_ = positions_by_keyword(lists, universe, postings());
    } else {
        keywords_ = concatenated(lists, &PartLists::keywords);
        positions_ = concatenated(lists, &PartLists::starts);
        positions_.push_back(postings());
    }
}

std::uint64_t KeywordLists::memory_bytes() const
{
    return keywords_.size() * sizeof(std::uint32_t) + positions_.size() * sizeof(std::uint64_t) +
           list_array_.size() * sizeof(std::uint32_t);
}

KeywordLists::Numbers KeywordLists::numbers(const Item& item) const
{
    if (item.last < item.first) return {0, 0};
    if (dense_) {
        const std::size_t universe = positions_.size() - 1;
        return {std::min<std::size_t>(item.first, universe),
                std::min<std::size_t>(std::size_t{item.last} + 1, universe)};
    }
    const auto first = std::lower_bound(keywords_.begin(), keywords_.end(), item.first);
    const auto last = std::upper_bound(first, keywords_.end(), item.last);
    return {static_cast<std::size_t>(first - keywords_.begin()), static_cast<std::size_t>(last - keywords_.begin())};
}

std::span<const std::uint32_t> KeywordLists::lists(const Numbers& numbers) const
{
    const std::uint64_t start = positions_[numbers.first];
    return std::span(list_array_).subspan(start, positions_[numbers.last] - start);
}

}  // namespace pgwarp::matchcount
