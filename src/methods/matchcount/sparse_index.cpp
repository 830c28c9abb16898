// The making of the mirror of sparse vectors.
#include "methods/matchcount/sparse_index.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace pgwarp::matchcount
{

namespace
{

// A term gets a column where at least one row in this number has it: adding up a column takes as long as adding up a
// list of a sixth of the rows.
constexpr std::size_t rows_of_frequent = 6;
// Lists of fewer rows take no time.
constexpr std::size_t least_rows_of_column = 1024;

KeywordRows keywords_of(const RowView& rows)
{
    return {std::span(rows.offsets, rows.count + 1), std::span(rows.words, rows.word_count())};
}

double l1_norm(const SparseView& row)
{
    return sparse_l1(row, {nullptr, nullptr, 0});
}

}  // namespace

SparseIndex::SparseIndex(Metric metric, const RowView& rows, ThreadPool& pool)
    : metric_(metric), rows_(rows), lists_(keywords_of(rows), pool), scales_(lists_.list_count())
{
    measure_rows(pool);
    write_all_values(pool);
    write_columns(pool);
    factors_ = {};
}

// Under cosine, values are those of the unit vector.
void SparseIndex::measure_rows(ThreadPool& pool)
{
    if (metric_ == Metric::cosine) factors_.resize(rows());
    if (metric_ == Metric::l2 || metric_ == Metric::l1) bases_.resize(rows());
    pool.parallel_for(rows(), 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const SparseView vector = row(static_cast<std::uint32_t>(i));
            if (metric_ == Metric::l2) bases_[i] = static_cast<float>(-sparse_norm_squared(vector) / 2);
            if (metric_ == Metric::l1) bases_[i] = static_cast<float>(-l1_norm(vector));
            if (metric_ != Metric::cosine) continue;
            const double norm = sparse_norm(vector);
            factors_[i] = norm > 0 ? 1 / norm : 0;
        }
    });
    for (const float base : bases_) largest_base_ = std::max(largest_base_, -double{base});
}

// Returns the first list that begins at a posting or behind it.
std::size_t SparseIndex::list_from(std::uint64_t posting) const
{
    const auto numbers = std::views::iota(std::size_t{0}, lists_.list_count());
    const auto before = [&](std::size_t number) { return lists_.start(number) < posting; };
    return static_cast<std::size_t>(std::ranges::partition_point(numbers, before) - numbers.begin());
}

// Writes the values of the postings of lists [first, last): rows come in order, so each posting has the next place of
// its list.
void SparseIndex::write_values(std::size_t first, std::size_t last)
{
    if (first == last) return;
    const std::uint64_t start = lists_.start(first);
    std::vector<std::uint64_t> next(last - first);
    for (std::size_t number = first; number < last; ++number) next[number - first] = lists_.start(number) - start;
    BulkVector<double> values(lists_.start(last) - start);
    const std::uint32_t first_word = lists_.keyword(first);
    const std::uint32_t last_word = lists_.keyword(last - 1);
    for (std::size_t i = 0; i < rows_.count; ++i) {
        const SparseView vector = row(static_cast<std::uint32_t>(i));
        const double factor = factors_.empty() ? 1 : factors_[i];
        std::size_t number = first;
        auto at = static_cast<std::size_t>(std::lower_bound(vector.indices, vector.indices + vector.count, first_word) -
                                           vector.indices);
        for (; at < vector.count && vector.indices[at] <= last_word; ++at) {
            number = lists_.number_from(number, vector.indices[at]);
            values[next[number - first]++] = vector.values[at] * factor;
        }
    }
    for (std::size_t number = first; number < last; ++number) {
        const std::uint64_t begin = lists_.start(number) - start;
        const std::uint64_t end = lists_.start(number + 1) - start;
        double largest = 0;
        for (std::uint64_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
        const double scale = largest / most_value_number;
        scales_[number] = scale;
        for (std::uint64_t i = begin; i < end; ++i)
            values_[start + i] = scale > 0 ? static_cast<std::int16_t>(std::nearbyint(values[i] / scale)) : 0;
    }
}

// Threads write the values of neighbouring lists, in pieces, so that the values in full take little memory.
void SparseIndex::write_all_values(ThreadPool& pool)
{
    constexpr std::uint64_t least = 1 << 18;  // postings of a piece
    const std::uint64_t postings = lists_.postings();
    const std::uint64_t pieces = std::clamp<std::uint64_t>(postings / least, 1, std::uint64_t{pool.threads()} * 4);
    values_.resize(postings);
    pool.parallel_for(pieces, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t piece = begin; piece < end; ++piece) {
            const std::size_t last =
                piece + 1 == pieces ? lists_.list_count() : list_from(postings * (piece + 1) / pieces);
            write_values(list_from(postings * piece / pieces), last);
        }
    });
}

void SparseIndex::write_columns(ThreadPool& pool)
{
    const std::size_t least = std::max<std::size_t>(rows() / rows_of_frequent, least_rows_of_column);
    for (std::size_t number = 0; number < lists_.list_count(); ++number)
        if (lists_.start(number + 1) - lists_.start(number) >= least) frequent_.push_back(number);
    columns_.resize(frequent_.size() * rows());
    pool.parallel_for(frequent_.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::int16_t* const column = columns_.data() + i * rows();
            std::fill_n(column, rows(), std::int16_t{0});
            const std::uint64_t start = lists_.start(frequent_[i]);
            const auto list = lists_.lists(KeywordLists::Numbers{frequent_[i], frequent_[i] + 1});
            for (std::size_t at = 0; at < list.size(); ++at) column[list[at]] = values_[start + at];
        }
    });
}

SparseTerm SparseIndex::term(std::uint32_t index) const
{
    const KeywordLists::Numbers numbers = lists_.numbers({index, index});
    if (numbers.first == numbers.last) return {};
    SparseTerm term{lists_.lists(numbers), values_.data() + lists_.start(numbers.first), scales_[numbers.first]};
    const auto at = std::lower_bound(frequent_.begin(), frequent_.end(), numbers.first);
    if (at != frequent_.end() && *at == numbers.first)
        term.column = columns_.data() + static_cast<std::size_t>(at - frequent_.begin()) * rows();
    return term;
}

std::uint64_t SparseIndex::memory_bytes() const
{
    return lists_.memory_bytes() + (values_.size() + columns_.size()) * sizeof(std::int16_t) +
           scales_.size() * sizeof(double) + bases_.size() * sizeof(float);
}

}  // namespace pgwarp::matchcount
