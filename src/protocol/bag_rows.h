// Documents as bags of terms, as words of a row, and queries that rank them by BM25 (Robertson and Zaragoza, The
// Probabilistic Relevance Framework, 2009). A row keeps what its document alone tells, the frequencies of its terms; a
// query keeps what the collection tells, a weight of each term and the correction by length. So a score depends on the
// two values alone, the operator is immutable, and an index and a sort agree, however old the statistics of a query
// are.
//
// A term is a hash of 56 bits. As in part_rows.h, a 64-bit number is two words, the high one first.
// - A bag: numbers term << 8 | frequency, terms strictly ascending. A frequency is 1 to 255. The length of the document
//   is the sum of its frequencies.
// - A query: base and per_length, float64; then {term << 8, weight} each, terms strictly ascending, weights float64.
//   A query without words has no terms.
//
// The score is the sum, over the terms t that both have, in ascending order, in float64, of
//     weight(t) * (frequency(t) / (frequency(t) + (base + per_length * length))).
// With base = k1 (1 - b), per_length = k1 b / (average length), and weight = (k1 + 1) idf it is BM25.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/part_rows.h"

namespace pgwarp
{

inline constexpr std::size_t bag_words = 2;             // of a term with its frequency
inline constexpr std::size_t bag_query_words = 4;       // before the terms
inline constexpr std::size_t bag_query_term_words = 4;  // of a term with its weight
inline constexpr unsigned frequency_bits = 8;
inline constexpr std::uint32_t most_frequency = (1U << frequency_bits) - 1;

// Limits keep every score finite, and every score of a common term above 0.
inline constexpr double least_term_weight = 1e-9;
inline constexpr double most_term_weight = 1e9;
inline constexpr double most_length_correction = 1e6;  // of base and of per_length

inline std::uint64_t term_of(std::uint64_t number)
{
    return number >> frequency_bits;
}

inline std::uint32_t frequency_of(std::uint64_t number)
{
    return static_cast<std::uint32_t>(number) & most_frequency;
}

inline double part_value(const std::uint32_t* words)
{
    return std::bit_cast<double>(part_number(words));
}

// The correction of a frequency by the length of the document.
struct LengthCorrection {
    double base = 0;
    double per_length = 0;

    double of(std::uint64_t length) const { return base + per_length * static_cast<double>(length); }
};

// A view of a query's words, which are valid or none.
struct BagQuery {
    std::span<const std::uint32_t> words;

    std::size_t terms() const
    {
        return words.size() <= bag_query_words ? 0 : (words.size() - bag_query_words) / bag_query_term_words;
    }
    std::uint64_t term(std::size_t i) const { return term_of(part_number(of_term(i))); }
    double weight(std::size_t i) const { return part_value(of_term(i) + 2); }
    LengthCorrection correction() const
    {
        if (words.empty()) return {};
        return {part_value(words.data()), part_value(words.data() + 2)};
    }

private:
    const std::uint32_t* of_term(std::size_t i) const
    {
        return words.data() + bag_query_words + i * bag_query_term_words;
    }
};

// The addend of a term. `corrected` is that of the document's length.
inline double term_score(double weight, std::uint32_t frequency, double corrected)
{
    const auto f = static_cast<double>(frequency);
    return weight * (f / (f + corrected));
}

// Check words from outside; null where they are valid, otherwise a description of the fault.
inline const char* bag_fault(std::span<const std::uint32_t> words)
{
    if (words.size() % bag_words != 0) return "bag with half a term";
    for (std::size_t at = 0; at < words.size(); at += bag_words) {
        const std::uint64_t number = part_number(words.data() + at);
        if (frequency_of(number) == 0) return "bag with a term that does not occur";
        if (at > 0 && term_of(part_number(words.data() + at - bag_words)) >= term_of(number))
            return "bag whose terms don't ascend";
    }
    return nullptr;
}

inline const char* bag_query_fault(std::span<const std::uint32_t> words)
{
    if (words.empty()) return nullptr;
    if (words.size() % bag_query_term_words != 0) return "query of a bag with half a term";
    // Comparisons with NaN are false.
    const LengthCorrection correction = BagQuery{words}.correction();
    if (!(correction.base >= 0 && correction.base <= most_length_correction) ||
        !(correction.per_length >= 0 && correction.per_length <= most_length_correction))
        return "query of a bag with an invalid correction by length";
    for (std::size_t at = bag_query_words; at < words.size(); at += bag_query_term_words) {
        const std::uint64_t number = part_number(words.data() + at);
        if (frequency_of(number) != 0) return "query of a bag with a frequency";
        if (at > bag_query_words && part_number(words.data() + at - bag_query_term_words) >= number)
            return "query of a bag whose terms don't ascend";
        const double weight = part_value(words.data() + at + 2);
        if (!(weight >= least_term_weight && weight <= most_term_weight))
            return "query of a bag with a weight out of range";
    }
    return nullptr;
}

// Returns the length of the document of a valid bag.
inline std::uint64_t length_of_bag(std::span<const std::uint32_t> words)
{
    std::uint64_t length = 0;
    for (std::size_t at = 0; at < words.size(); at += bag_words) length += frequency_of(part_number(words.data() + at));
    return length;
}

// Returns the score of a valid bag for a valid query.
inline double score_of_bag(std::span<const std::uint32_t> query_words, std::span<const std::uint32_t> bag)
{
    const BagQuery query{query_words};
    const double corrected = query.correction().of(length_of_bag(bag));
    double score = 0;
    std::size_t i = 0;
    std::size_t at = 0;
    while (i < query.terms() && at < bag.size()) {
        const std::uint64_t number = part_number(bag.data() + at);
        const std::uint64_t wanted = query.term(i);
        const std::uint64_t found = term_of(number);
        if (wanted == found) score += term_score(query.weight(i), frequency_of(number), corrected);
        if (wanted <= found) ++i;
        if (found <= wanted) at += bag_words;
    }
    return score;
}

// The distance of the operator; smaller is nearer.
inline double distance_of_score(double score)
{
    return 0.0 - score;  // no negative zero
}

}  // namespace pgwarp
