// The search of sparse vectors.
#include "methods/matchcount/sparse_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "methods/matchcount/slice_counter.h"
#include "methods/matchcount/sparse_kernels.h"
#include "methods/matchcount/sparse_score.h"
#include "methods/ordered_scan.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::uint32_t scored_rows = 8192;  // of a slice, whose scores stay in the first cache

// Keeps the results among rows that are offered in any order.
class SparseResults
{
public:
    SparseResults(const SparseIndex& index, const SparseQuery& query)
        : index_(index), query_(query), first_rows_(query.k)
    {
    }

    // The distance behind which no row is a result.
    double farthest() const
    {
        return first_rows_.full() ? std::min(query_.within, first_rows_.last_distance()) : query_.within;
    }
    void offer(std::uint32_t row)
    {
        if (bit_is_set(query_.dead, row)) return;
        const RowResult found{sparse_distance(index_.metric(), query_.vector, index_.row(row)), row};
        // Comparisons with NaN are false.
        if (found.distance <= query_.within && comes_before(query_.after, found)) first_rows_.offer(found);
    }
    void merge(const SparseResults& other) { first_rows_.merge(other.first_rows_); }
    std::vector<RowResult> take_sorted() { return first_rows_.take_sorted(); }

private:
    const SparseIndex& index_;
    const SparseQuery& query_;
    FirstRows first_rows_;
};

// Scores the rows [begin, end), which is a range of whole slices but at the end of the index.
class RangeSearch
{
public:
    RangeSearch(const SparseIndex& index, const SparseQuery& query, const SparseScore& score, SparseResults& results)
        : index_(index), score_(score), results_(results), polls_(query.cancel), sums_(scored_rows)
    {
        if (query.after.distance > before_all.distance) most_ = upper(score.most_score(query.after.distance));
    }

    void run(std::uint32_t begin, std::uint32_t end)
    {
        skip_to(begin);
        for (first_ = begin; first_ < end; first_ += scored_rows) {
            count_ = std::min(scored_rows, end - first_);
            add_up();
            offer_slice();
        }
    }

private:
    // Return a bound as float32.
    static float lower(double bound)
    {
        return std::nextafter(static_cast<float>(bound), -std::numeric_limits<float>::infinity());
    }
    static float upper(double bound)
    {
        return std::nextafter(static_cast<float>(bound), std::numeric_limits<float>::infinity());
    }

    void skip_to(std::uint32_t row)
    {
        for (const QueryTerm& term : score_.terms()) places_.push_back(postings_below(term.of_rows.rows, row));
    }

    void add_up()
    {
        if (index_.bases().empty()) {
            std::fill_n(sums_.begin(), count_, 0.0F);
        } else {
            std::copy_n(index_.bases().begin() + first_, count_, sums_.begin());
        }
        for (std::size_t i = 0; i < places_.size(); ++i) {
            const QueryTerm& term = score_.terms()[i];
            if (term.of_rows.column != nullptr) {
                add_column(term);
            } else {
                places_[i] += add_list(term, places_[i]);
            }
        }
        polls_.counted(count_);
    }

    void add_column(const QueryTerm& term)
    {
        const std::int16_t* const column = term.of_rows.column + first_;
        if (score_.clamps()) {
            add_clamped_products(column, count_, term.factor, term.most, sums_.data());
        } else {
            add_products(column, count_, term.factor, sums_.data());
        }
        polls_.counted(count_ / 8);
    }

    // Adds the addends of the slice, whose postings begin at `place`. Returns their number.
    std::size_t add_list(const QueryTerm& term, std::size_t place)
    {
        const Postings rows = term.of_rows.rows.subspan(place);
        const std::size_t here = postings_below(rows, std::uint64_t{first_} + count_);
        const std::int16_t* const values = term.of_rows.values + place;
        const auto value = [&](std::size_t i) { return static_cast<float>(values[i]) * term.factor; };
        float* const sums = sums_.data();
        if (score_.clamps()) {
            for (std::size_t i = 0; i < here; ++i) sums[rows[i] - first_] += std::clamp(value(i), 0.0F, term.most);
        } else {
            for (std::size_t i = 0; i < here; ++i) sums[rows[i] - first_] += value(i);
        }
        polls_.counted(here);
        return here;
    }

    void offer_slice()
    {
        float least = lower(score_.least_score(results_.farthest()));
        std::size_t at = find_between(sums_.data(), 0, count_, least, most_);
        while (at < count_) {
            results_.offer(first_ + static_cast<std::uint32_t>(at));
            polls_.counted(64);
            least = lower(score_.least_score(results_.farthest()));
            at = find_between(sums_.data(), at + 1, count_, least, most_);
        }
    }

    const SparseIndex& index_;
    const SparseScore& score_;
    SparseResults& results_;
    PostingPolls polls_;
    BulkVector<float> sums_;           // of the slice
    std::vector<std::size_t> places_;  // the next posting of each term
    float most_ = std::numeric_limits<float>::infinity();
    std::uint32_t first_ = 0;  // row of the slice
    std::uint32_t count_ = 0;
};

void search_range(const SparseIndex& index, const SparseQuery& query, const SparseScore& score, std::uint32_t begin,
                  std::uint32_t end, SparseResults& results)
{
    if (score.in_range()) return RangeSearch(index, query, score, results).run(begin, end);
    PostingPolls polls(query.cancel);
    for (std::uint32_t row = begin; row < end; ++row) {
        results.offer(row);
        polls.counted(64);
    }
}

}  // namespace

std::vector<RowResult> search_sparse(const SparseIndex& index, const SparseQuery& query, ThreadPool& pool)
{
    constexpr std::uint32_t least_rows = 2 * scored_rows;  // of a thread
    if (query.k == 0) return {};
    const SparseScore score(index, query.vector);
    SparseResults results(index, query);
    const std::size_t slices = (std::size_t{index.rows()} + scored_rows - 1) / scored_rows;
    const std::size_t pieces = std::clamp<std::size_t>(index.rows() / least_rows, 1, pool.threads());
    std::mutex mutex;
    pool.parallel_for(pieces, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t piece = begin; piece < end; ++piece) {
            const auto first = static_cast<std::uint32_t>(slices * piece / pieces * scored_rows);
            const std::size_t last = slices * (piece + 1) / pieces * scored_rows;
            SparseResults of_piece(index, query);
            search_range(index, query, score, first,
                         static_cast<std::uint32_t>(std::min<std::size_t>(last, index.rows())), of_piece);
            const std::lock_guard lock(mutex);
            results.merge(of_piece);
        }
    });
    return results.take_sorted();
}

}  // namespace pgwarp::matchcount
