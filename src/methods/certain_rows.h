// The nearest of certain rows, which a caller lists: Searcher::search_among().
#pragma once

#include <algorithm>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/ordered_scan.h"
#include "numeric/top_k.h"

namespace pgwarp
{

inline constexpr std::size_t certain_rows_grain = 2048;  // that a thread compares at a time

// The batch.k first live rows after `after`, where value(row) returns the value of each.
template <class Value>
std::vector<RowResult> value_certain_rows(const SearchBatch& batch, RowList rows, const RowResult& after,
                                          const Value& value, ThreadPool& pool)
{
    FirstRows first(batch.k);
    std::mutex mutex;
    pool.parallel_for(rows.size(), certain_rows_grain, [&](std::size_t begin, std::size_t end) {
        batch.check_cancel();
        FirstRows some(batch.k);
        for (const std::uint32_t row : rows.subspan(begin, end - begin)) {
            if (bit_is_set(batch.dead, row)) continue;
            const RowResult result{value(row), row};
            if (comes_before(after, result)) some.offer(result);
        }
        const std::lock_guard lock(mutex);
        first.merge(some);
    });
    return first.take_sorted();
}

// The `wanted` live rows of smallest score, where scores(rows, out) computes those of some rows. Rows without a number
// for a score come last.
template <class Scores>
std::vector<Candidate> propose_certain_rows(const SearchBatch& batch, RowList rows, std::size_t wanted,
                                            const Scores& scores, ThreadPool& pool)
{
    constexpr std::size_t block = 256;
    constexpr float most = std::numeric_limits<float>::max();
    TopK best(wanted);
    std::mutex mutex;
    pool.parallel_for(rows.size(), certain_rows_grain, [&](std::size_t begin, std::size_t end) {
        batch.check_cancel();
        TopK some(wanted);
        std::uint32_t live[block];
        float scored[block];
        while (begin < end) {
            std::size_t count = 0;
            for (; begin < end && count < block; ++begin)
                if (!bit_is_set(batch.dead, rows[begin])) live[count++] = rows[begin];
            scores(RowList(live, count), scored);
            for (std::size_t i = 0; i < count; ++i) some.push(scored[i] < most ? scored[i] : most, live[i]);
        }
        const std::lock_guard lock(mutex);
        best.merge(some);
    });
    return best.take_sorted();
}

// The rows of candidates.
inline std::vector<std::uint32_t> rows_of(std::span<const Candidate> candidates)
{
    std::vector<std::uint32_t> rows;
    rows.reserve(candidates.size());
    for (const Candidate& candidate : candidates) rows.push_back(candidate.row);
    return rows;
}

// The number of rows whose values are computed, where scores in less precision propose rows for k results.
inline std::size_t valued_certain_rows(std::size_t k)
{
    return std::max<std::size_t>(4 * k, k + 64);
}

}  // namespace pgwarp
