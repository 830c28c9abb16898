// Signs sets. An element's number under a function is a hash of the element and the function's seed.
#include "methods/matchcount/set_hashes.h"

#include <algorithm>

#include "methods/matchcount/signature_kernels.h"
#include "numeric/hash.h"
#include "protocol/part_rows.h"

namespace pgwarp::matchcount
{

namespace
{

// Stored signatures depend on it: never change it.
constexpr std::uint64_t seed_of_functions = 0x6d696e68617368;
constexpr std::size_t signed_together = 64;  // sets

// The digest is made of the low bits, because the high bits of the least of many numbers are zeros.
std::uint8_t digest_of(std::uint64_t least)
{
    return static_cast<std::uint8_t>((least & 0xffffffff) * set_digests >> 32);
}

}  // namespace

SetHashes::SetHashes(std::size_t functions) : functions_(functions), seeds_(functions + kernel_padding)
{
    for (std::size_t f = 0; f < functions; ++f) seeds_[f] = mix_hash(seed_of_functions + f);
}

void SetHashes::sign(std::span<const std::uint32_t> set, std::uint8_t* out) const
{
    if (set.empty()) {
        std::fill_n(out, functions(), empty_set_digest);
        return;
    }
    thread_local std::vector<std::uint64_t> elements;
    thread_local std::vector<std::uint64_t> least;
    elements.clear();
    least.resize(functions() + kernel_padding);
    // Elements that are neighbours, as the numbers of a serial column, are made unlike each other first.
    for (std::size_t at = 0; at < set.size(); at += set_words) elements.push_back(mix_hash(part_number(&set[at])));
    least_hashes(elements, seeds_.data(), functions(), least.data());
    for (std::size_t f = 0; f < functions(); ++f) out[f] = digest_of(least[f]);
}

void SetHashes::sign(const RowView& sets, std::uint8_t* out, ThreadPool& pool, const CancelToken* cancel) const
{
    pool.parallel_for(sets.count, signed_together, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (cancel != nullptr) cancel->check();
            sign(sets.list(i), out + i * signature_bytes());
        }
    });
}

void SetHashes::count_matches(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                              std::uint16_t* out) const
{
    count_equal_bytes(query, rows, count, signature_bytes(), out);
}

}  // namespace pgwarp::matchcount
