// Bags and their queries for tests: as containers, as the words of rows, and compared by definition.
#pragma once

#include <map>
#include <random>
#include <vector>

#include "part_fixture.h"
#include "protocol/bag_rows.h"

namespace pgwarp::test
{

// term -> frequency
struct Bag : std::map<std::uint64_t, std::uint32_t> {
    using map::map;
};

struct BagOfWeights {
    double base = 0;
    double per_length = 0;
    std::map<std::uint64_t, double> weights;  // of terms
};

inline Words words_of(const Bag& bag)
{
    Words words;
    for (const auto& [term, frequency] : bag) append_number(term << frequency_bits | frequency, words);
    return words;
}

inline Words words_of(const BagOfWeights& query)
{
    Words words;
    append_number(std::bit_cast<std::uint64_t>(query.base), words);
    append_number(std::bit_cast<std::uint64_t>(query.per_length), words);
    for (const auto& [term, weight] : query.weights) {
        append_number(term << frequency_bits, words);
        append_number(std::bit_cast<std::uint64_t>(weight), words);
    }
    return words;
}

// Terms have 56 bits.
inline std::uint64_t spread_term(std::uint64_t number, bool sparse)
{
    return spread(number, sparse) >> (sparse ? frequency_bits : 0);
}

// Low terms are frequent, as words of a language are.
inline std::uint64_t random_term(std::mt19937_64& random, std::uint64_t universe)
{
    return random() % (1 + random() % universe);
}

inline Bag random_bag(std::mt19937_64& random, std::size_t most, std::uint64_t universe, bool sparse = false)
{
    Bag bag;
    for (std::size_t left = random() % (most + 1); left > 0; --left) {
        std::uint32_t& frequency = bag[spread_term(random_term(random, universe), sparse)];
        frequency = std::min(most_frequency, frequency + (random() % 64 == 0 ? 200U : 1U));
    }
    return bag;
}

inline BagOfWeights random_weights(std::mt19937_64& random, std::size_t most, std::uint64_t universe,
                                   bool sparse = false)
{
    const double k1 = random() % 8 == 0 ? 0 : static_cast<double>(random() % 300) / 100;
    const double b = static_cast<double>(random() % 5) / 4;
    BagOfWeights query{k1 * (1 - b), k1 * b / static_cast<double>(1 + random() % 20), {}};
    for (std::size_t left = random() % (most + 1); left > 0; --left) {
        const double weight = random() % 16 == 0 ? 1e9 : static_cast<double>(1 + random() % 1000) / 100;
        query.weights[spread_term(random_term(random, universe + 1), sparse)] = weight;
    }
    return query;
}

// The containers of words.
inline Bag bag_of(std::span<const std::uint32_t> words)
{
    Bag bag;
    for (std::size_t at = 0; at < words.size(); at += 2) {
        const std::uint64_t number = part_number(words.data() + at);
        bag[number / 256] = static_cast<std::uint32_t>(number % 256);
    }
    return bag;
}

inline BagOfWeights weights_of(std::span<const std::uint32_t> words)
{
    const auto value = [&](std::size_t at) { return std::bit_cast<double>(part_number(words.data() + at)); };
    BagOfWeights query{value(0), value(2), {}};
    for (std::size_t at = 4; at < words.size(); at += 4)
        query.weights[part_number(words.data() + at) / 256] = value(at + 2);
    return query;
}

// The distance by definition.
inline double plain_bm25(const BagOfWeights& query, const Bag& bag)
{
    std::uint64_t length = 0;
    for (const auto& [term, frequency] : bag) length += frequency;
    const double corrected = query.base + query.per_length * static_cast<double>(length);
    double score = 0;
    for (const auto& [term, weight] : query.weights) {
        const auto found = bag.find(term);
        if (found != bag.end()) score += weight * (found->second / (found->second + corrected));
    }
    return 0 - score;
}

inline OwnedRows random_bags(std::size_t count, std::size_t most, std::uint64_t universe, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<Bag> bags(count);
    for (Bag& bag : bags) bag = random_bag(random, most, universe);
    return rows_of_parts(bags);
}

inline OwnedRows random_bag_queries(std::size_t count, std::size_t most, std::uint64_t universe, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<BagOfWeights> queries(count);
    for (BagOfWeights& query : queries) query = random_weights(random, most, universe);
    return rows_of_parts(queries);
}

}  // namespace pgwarp::test
