// Rows that are sets of parts, as words of a row: sets of 64-bit elements, and attributes, of which each has a name and
// a value. The backend makes elements of integers, and hashes texts and lexemes to 64 bits, so that the engine compares
// numbers. Operators compare the same numbers: an index and a sort agree on every distance.
//
// A 64-bit number is two words, the high one first, so that words and numbers have the same order.
// - A set: its elements, strictly ascending.
// - Attributes: {name, value} each, names strictly ascending. A name is a hash whose last bit tells whether the value
// is
//   a number (1) or a category (0). A category is the hash of a text; a number is its float64 as ordered_number().
// - A query of sets is a set. A query of attributes is a list of items, each {name, count of ranges, ranges}: one word
//   with the count, and is_range set where ranges {first, last} follow; otherwise values follow, which are ranges of
//   one value. Ranges are disjoint and strictly ascending. An item contains an attribute of the same name whose value
//   lies in one of its ranges (GENIE, definition 3.1).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pgwarp
{

inline constexpr std::size_t set_words = 2;        // of an element
inline constexpr std::size_t attribute_words = 4;  // of an attribute
inline constexpr std::size_t item_words = 3;       // of an item, without its ranges
inline constexpr std::uint32_t is_range = 0x80000000;

inline std::uint64_t part_number(const std::uint32_t* words)
{
    return std::uint64_t{words[0]} << 32 | words[1];
}

inline void write_part_number(std::uint64_t number, std::uint32_t* out)
{
    out[0] = static_cast<std::uint32_t>(number >> 32);
    out[1] = static_cast<std::uint32_t>(number);
}

// Maps a float64 that is not NaN to an integer of the same order; both zeros to the same.
inline std::uint64_t ordered_number(double value)
{
    const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
    const std::uint64_t sign = std::uint64_t{1} << 63;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

// One item of a query of attributes; it points into the query's words.
struct AttributeItem {
    std::uint64_t name;
    std::uint32_t ranges;
    bool of_ranges;              // else of single values
    const std::uint32_t* words;  // of the ranges

    std::uint64_t first(std::uint32_t range) const { return part_number(words + std::size_t{range} * range_words()); }
    std::uint64_t last(std::uint32_t range) const
    {
        return of_ranges ? part_number(words + std::size_t{range} * range_words() + 2) : first(range);
    }
    std::size_t range_words() const { return of_ranges ? 4 : 2; }
    bool contains(std::uint64_t value) const
    {
        std::uint32_t begin = 0;
        std::uint32_t end = ranges;  // the first range behind the value
        while (begin < end) {
            const std::uint32_t middle = begin + (end - begin) / 2;
            if (first(middle) <= value) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        return end > 0 && value <= last(end - 1);
    }
};

// Goes over the items of a query of attributes. A query from outside must have passed attribute_query_fault().
class AttributeItems
{
public:
    explicit AttributeItems(std::span<const std::uint32_t> words) : words_(words) {}
    // False at the end, or where the remaining words are no item.
    bool next(AttributeItem* item)
    {
        if (words_.size() < item_words) return false;
        item->name = part_number(words_.data());
        item->of_ranges = (words_[2] & is_range) != 0;
        item->ranges = words_[2] & ~is_range;
        item->words = words_.data() + item_words;
        const std::size_t length = item->ranges * item->range_words();
        if (length > words_.size() - item_words) return false;
        words_ = words_.subspan(item_words + length);
        return true;
    }
    std::size_t remaining_words() const { return words_.size(); }

private:
    std::span<const std::uint32_t> words_;
};

// Check words from outside; null where they are valid, otherwise a description of the fault.
inline const char* set_fault(std::span<const std::uint32_t> words)
{
    if (words.size() % set_words != 0) return "set with half an element";
    for (std::size_t at = set_words; at < words.size(); at += set_words) {
        if (part_number(words.data() + at - set_words) >= part_number(words.data() + at))
            return "set whose elements don't ascend";
    }
    return nullptr;
}

inline const char* attribute_set_fault(std::span<const std::uint32_t> words)
{
    if (words.size() % attribute_words != 0) return "attributes without a value";
    for (std::size_t at = attribute_words; at < words.size(); at += attribute_words) {
        if (part_number(words.data() + at - attribute_words) >= part_number(words.data() + at))
            return "attributes whose names don't ascend";
    }
    return nullptr;
}

inline const char* attribute_query_fault(std::span<const std::uint32_t> words)
{
    AttributeItems items(words);
    AttributeItem item;
    while (items.next(&item)) {
        for (std::uint32_t i = 0; i < item.ranges; ++i) {
            if (item.first(i) > item.last(i)) return "attribute query with a range the wrong way round";
            if (i > 0 && item.first(i) <= item.last(i - 1)) return "attribute query whose ranges don't ascend";
        }
    }
    return items.remaining_words() == 0 ? nullptr : "attribute query with half an item";
}

// Returns the number of elements that two sets share.
inline std::uint32_t count_common(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b)
{
    std::uint32_t common = 0;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        const std::uint64_t left = part_number(a.data() + i);
        const std::uint64_t right = part_number(b.data() + j);
        if (left == right) ++common;
        if (left <= right) i += set_words;
        if (right <= left) j += set_words;
    }
    return common;
}

// Returns the match count of attributes: the number of items that contain one of them.
inline std::uint32_t count_matches(std::span<const std::uint32_t> query, std::span<const std::uint32_t> attributes)
{
    std::uint32_t count = 0;
    AttributeItems items(query);
    AttributeItem item;
    while (items.next(&item)) {
        std::size_t begin = 0;
        std::size_t end = attributes.size() / attribute_words;  // the first attribute not before the name
        while (begin < end) {
            const std::size_t middle = begin + (end - begin) / 2;
            if (part_number(attributes.data() + middle * attribute_words) < item.name) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        if (end * attribute_words >= attributes.size()) continue;
        const std::uint32_t* found = attributes.data() + end * attribute_words;
        if (part_number(found) == item.name && item.contains(part_number(found + 2))) ++count;
    }
    return count;
}

// Distances of the operators; smaller is nearer. Integers have no negative zero, which GCC 12 makes of 0.0 - common.
inline double overlap_distance(std::uint32_t common)
{
    return static_cast<double>(-static_cast<std::int64_t>(common));
}

// The Jaccard distance of two sets of these sizes; two empty sets are equal.
inline double jaccard_distance_of_sets(std::uint32_t common, std::size_t a, std::size_t b)
{
    const std::size_t all = a + b - common;
    return all == 0 ? 0 : 1 - static_cast<double>(common) / static_cast<double>(all);
}

}  // namespace pgwarp
