// The predicates of some queries as they are sent to the device. Free of CUDA, so that tests on the CPU cover it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/carver.h"
#include "numeric/parallel.h"
#include "rows/row_filter.h"

namespace pgwarp::cuda::rows
{

using PredicateWords = std::span<const std::uint64_t>;  // empty: all rows pass

// Of all predicates that are sent together.
inline constexpr std::size_t most_sent_words = std::size_t{1} << 22;

// The least and the greatest code of a column.
struct CodeSpan {
    std::uint64_t first = 0;
    std::uint64_t last = ~std::uint64_t{0};
};

// The attributes of the rows of an index on the device.
struct AttributeView {
    const std::uint64_t* codes = nullptr;  // [rows][columns]
    std::uint32_t columns = 0;
    const CodeSpan* spans = nullptr;  // [columns], on the host; null: not known
};

class SentFilters
{
public:
    SentFilters() = default;
    // Of the first queries: of as many as most_sent_words allow, at least one. The predicates outlive this. Neighbours
    // with the same predicate, in the same memory, share it.
    SentFilters(const AttributeView& attributes, std::span<const PredicateWords> predicates);

    // Queries; 0: there are no filters.
    std::size_t count() const { return begins_.size(); }
    // Leaves out the queries from `count` on.
    void keep(std::size_t count) { begins_.resize(count < begins_.size() ? count : begins_.size()); }
    std::size_t bytes() const;
    // Writes what is sent: bytes() bytes.
    void write(std::byte* to) const { write(to, caller_alone()); }
    void write(std::byte* to, ThreadPool& pool) const;
    // `sent`: the address on the device.
    FilterView view(std::byte* sent) const;

private:
    struct Space {
        std::uint64_t* words;
        std::uint32_t* begins;
    };
    Space lay_out(Carver& memory) const
    {
        return {memory.take<std::uint64_t>(words_), memory.take<std::uint32_t>(begins_.size())};
    }

    AttributeView attributes_;
    std::span<const PredicateWords> predicates_;
    std::vector<std::uint32_t> begins_;
    std::size_t words_ = 0;
};

}  // namespace pgwarp::cuda::rows
