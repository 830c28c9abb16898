// Minhash signatures of sets, whose agreement tells their Jaccard similarity (GENIE, section 5; Li and Koenig, "b-bit
// minwise hashing").
//
// Function f gives an element a number, and a set the element of the least number: two sets of Jaccard similarity s
// have the same one with probability s. A signature keeps a digest of that number, which has set_digests values: sets
// agree on a function with probability p = s + (1 - s) / set_digests, whatever their sizes. So the share c / m of the m
// functions on which they agree estimates s by (c / m - 1 / set_digests) / (1 - 1 / set_digests), without a bias.
//
// The functions are the same in every index: they follow from their numbers, and no array holds them. Everything is
// arithmetic of integers, so that every processor gives a set the same signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/parallel.h"
#include "protocol/rows.h"

namespace pgwarp::matchcount
{

// Values of a function on sets that are not empty. An empty set has the value empty_set_digest everywhere: it agrees
// with empty sets on all functions, and with others on none.
inline constexpr std::uint32_t set_digests = 254;
inline constexpr std::uint8_t empty_set_digest = 254;

class SetHashes
{
public:
    explicit SetHashes(std::size_t functions);

    std::size_t functions() const { return functions_; }
    // A byte a function, less than 255.
    std::size_t signature_bytes() const { return functions(); }
    // Writes the signature of a valid set. Thread-safe.
    void sign(std::span<const std::uint32_t> set, std::uint8_t* out) const;
    // The same for sets [count], out[count][signature_bytes()]. Throws Cancelled.
    void sign(const RowView& sets, std::uint8_t* out, ThreadPool& pool, const CancelToken* cancel) const;
    // out[i] = number of functions on which row i and the query agree; rows [count][signature_bytes()].
    void count_matches(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                       std::uint16_t* out) const;
    // Returns the probability that two sets of this similarity agree on a function.
    double collision_chance(double similarity) const { return similarity + (1 - similarity) / set_digests; }
    // Returns the estimate of the Jaccard similarity of two sets that agree on `count` functions. It is negative where
    // they agree on fewer than sets without a common element do on average.
    double similarity(std::uint32_t count) const
    {
        const double share = static_cast<double>(count) / static_cast<double>(functions());
        return (share * set_digests - 1) / (set_digests - 1);
    }

private:
    std::size_t functions_;
    std::vector<std::uint64_t> seeds_;  // [functions], then padding of a kernel
};

}  // namespace pgwarp::matchcount
