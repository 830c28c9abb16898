#include "filter_truth.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "numeric/distance.h"
#include "protocol/predicates.h"

namespace pgwarp::bench
{

namespace
{

constexpr std::size_t tile_rows = 512;
constexpr std::size_t tiles_of_part = 128;
constexpr float slack = 1e-5F;  // rows as far as the k-th but for rounding are right too

using Near = std::pair<float, std::uint32_t>;

// The codes that pass the predicate of each judged query, and the nearest rows so far. Products of tiles are rounded,
// so more than k rows are kept, and compared again in the end.
class Truth
{
public:
    Truth(const FilterRows& rows, std::size_t judged, std::size_t k, const std::vector<AskedQueries>& asked)
        : rows_(rows), judged_(judged), kept_(4 * k), lists_(asked.size() * judged)
    {
        for (const AskedQueries& some : asked) {
            for (std::size_t q = 0; q < judged; ++q) add_codes(some.predicates[q]);
        }
    }

    void compare_all(ThreadPool& pool)
    {
        const std::size_t tiles = (rows_.size() + tile_rows - 1) / tile_rows;
        pool.parallel_for(tiles, tiles_of_part, [&](std::size_t begin, std::size_t end) { compare(begin, end); });
    }

    double limit(std::size_t list, std::size_t k)
    {
        const float* const query = rows_.queries().row(list % judged_).data();
        std::vector<float> row(rows_.width());
        std::vector<float> exact;
        for (const Near& near : lists_[list]) {
            rows_.read(near.second, 1, row.data());
            exact.push_back(score(Metric::l2, query, row.data(), rows_.width()));
        }
        if (exact.empty()) return 0;
        const std::size_t last = std::min(k, exact.size()) - 1;
        std::ranges::nth_element(exact, exact.begin() + static_cast<std::ptrdiff_t>(last));
        return exact[last] * (1 + slack);
    }

private:
    void add_codes(const std::vector<std::uint64_t>& predicate)
    {
        PredicateTerms terms(predicate);
        PredicateTerm term;
        terms.next(&term);
        columns_.push_back(term.column);
        for (std::uint64_t code = 0; code < regions; ++code) codes_.push_back(term.contains(code) ? 1 : 0);
    }

    void compare(std::size_t begin, std::size_t end)
    {
        std::vector<std::vector<Near>> lists;
        {
            const std::lock_guard lock(mutex_);
            lists = lists_;
        }
        std::vector<float> some(tile_rows * rows_.width());
        std::vector<float> norms(tile_rows);
        std::vector<float> scored(judged_ * tile_rows);
        for (std::size_t tile = begin; tile < end; ++tile) {
            const std::size_t first = tile * tile_rows;
            const std::size_t count = std::min(tile_rows, rows_.size() - first);
            rows_.read(first, count, some.data());
            squared_norms(some.data(), count, rows_.width(), norms.data());
            score_tile(Metric::l2, rows_.queries().values.data(), judged_, some.data(), norms.data(), count,
                       rows_.width(), scored.data());
            for (std::size_t list = 0; list < lists.size(); ++list)
                take(list, scored.data() + list % judged_ * count, first, count, lists[list]);
        }
        const std::lock_guard lock(mutex_);
        for (std::size_t list = 0; list < lists.size(); ++list) join(lists[list], lists_[list]);
    }

    void take(std::size_t list, const float* scored, std::size_t first, std::size_t count,
              std::vector<Near>& heap) const
    {
        const std::uint8_t* const passes = codes_.data() + list * regions;
        const std::uint64_t* const codes = rows_.attributes_of(first) + columns_[list];
        float bound = heap.size() < kept_ ? std::numeric_limits<float>::infinity() : heap.front().first;
        for (std::size_t i = 0; i < count; ++i) {
            if (scored[i] >= bound || passes[codes[i * attribute_columns]] == 0) continue;
            if (heap.size() == kept_) {
                std::ranges::pop_heap(heap);
                heap.pop_back();
            }
            heap.emplace_back(scored[i], static_cast<std::uint32_t>(first + i));
            std::ranges::push_heap(heap);
            if (heap.size() == kept_) bound = heap.front().first;
        }
    }

    // Lists begin with rows of the common one, which are taken once.
    void join(const std::vector<Near>& from, std::vector<Near>& to) const
    {
        to.insert(to.end(), from.begin(), from.end());
        std::ranges::sort(to);
        to.erase(std::unique(to.begin(), to.end()), to.end());
        if (to.size() > kept_) to.resize(kept_);
        std::ranges::make_heap(to);
    }

    const FilterRows& rows_;
    std::size_t judged_;
    std::size_t kept_;
    std::vector<std::vector<Near>> lists_;  // [asked][judged]
    std::vector<std::uint8_t> codes_;       // [asked][judged][regions]: whether rows with the code pass
    std::vector<std::uint32_t> columns_;    // [asked][judged]
    std::mutex mutex_;
};

}  // namespace

void find_limits(const FilterRows& rows, std::size_t judged, std::size_t k, ThreadPool& pool,
                 std::vector<AskedQueries>& asked)
{
    Truth truth(rows, judged, k, asked);
    truth.compare_all(pool);
    for (std::size_t i = 0; i < asked.size(); ++i) {
        for (std::size_t q = 0; q < judged; ++q) asked[i].limits.push_back(truth.limit(i * judged + q, k));
    }
}

}  // namespace pgwarp::bench
