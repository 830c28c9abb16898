// The form of sparse vectors in which a device searches them, made on the host. The terms that most rows have are
// columns of a matrix of halves; the postings of all others are lists, cut into slices of positions. Rows come in the
// order of distance/row_order.h.
//
// Four postings of a list are a quad, which is read at once; the last quad of a list in a slice is filled up with
// zeros, which add nothing. A posting has 32 bits: the place of its row in the slice, which is added_place()
// (distance/added_place.h), in the lower half; in the upper half the number of its value, a multiple of its list's unit
// that is rounded away from 0. A query's multiplier turns a number into an addend in 2^-15 units of the query; sums of
// addends stay below 2^16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "distance/row_order.h"
#include "matchcount/sparse_bound.h"
#include "methods/matchcount/sparse_index.h"
#include "numeric/half.h"

namespace pgwarp::cuda::matchcount
{

struct SparseTuning {
    std::uint32_t columns = 256;  // at most; a multiple of 64
    std::uint32_t slice = 2048;   // positions: a power of two from 256 to 2^13
};

struct SparseElement {
    std::uint32_t index;
    float value;
};

// A list of the query.
struct ListItem {
    std::uint32_t list;
    std::int32_t multiplier;
};

inline constexpr std::uint32_t quad_postings = 4;
inline constexpr std::uint32_t most_sum = 65280;            // of the addends of a pair
inline constexpr std::uint32_t sum_units = 256;             // of sums in a unit of the bytes
inline constexpr std::uint32_t most_query_elements = 1024;  // of a query that the device serves

// The slices [first, first + count) as they are stored.
struct SparseSlices {
    std::vector<std::uint32_t> starts;    // [count][lists + 1], quads among all
    std::vector<std::uint32_t> postings;  // of these slices, in quads
};

class SparseForm
{
public:
    // index: outlives the form; of inner product, cosine or L2. Throws std::bad_alloc where the form would have 2^32
    // postings, or starts that take more memory than the rows.
    SparseForm(const pgwarp::matchcount::SparseIndex& index, const SparseTuning& tuning, ThreadPool& pool);

    const RowOrder& order() const { return order_; }
    std::uint32_t rows() const { return index_.rows(); }
    std::uint32_t columns() const { return columns_; }  // padded to a multiple of 64
    std::uint32_t lists() const { return lists_; }
    std::uint32_t slice() const { return tuning_.slice; }
    std::uint32_t slices() const { return slices_; }
    std::uint32_t padded_positions() const { return padded_positions_; }
    std::uint64_t list_postings() const { return list_postings_; }
    // Counts all quads. Goes over the rows.
    std::uint64_t count_quads(ThreadPool& pool) const;
    std::uint64_t elements() const { return elements_; }
    const std::vector<double>& squares() const { return squares_; }  // canonical |y|^2 of each row
    // Whether the scores of rows stay within float32.
    bool in_range() const;
    // Complete after write_halves() of all positions.
    const SparseRowBounds& bounds() const { return bounds_; }

    // Writes the halves of positions [first, first + count) to `out` [count][columns()].
    void write_halves(std::uint32_t first, std::uint32_t count, half_bits* out, ThreadPool& pool);
    // The base of each position, negative: |y|^2 / 2 under L2, else 0; infinity where there is no row, or one without
    // a distance. [padded_positions()]
    std::vector<float> penalties() const;
    // quad_base: the quads of earlier slices.
    SparseSlices make_slices(std::uint32_t first, std::uint32_t count, std::uint64_t quad_base, ThreadPool& pool) const;

    // A query as it is sent.
    struct Query {
        half_bits* halves;  // [columns()], zeros at first
        ListItem* items;    // [elements]
        std::uint32_t item_count;
        float factor;  // score = factor * product of halves - penalty + unit * byte
        float unit;
        SparseQueryBound bound;
        double square;  // canonical |x|^2
        bool usable;    // false: its scores may overflow, or it has no distances
    };
    // halves and items are given.
    void write_query(const SparseView& vector, Query& query) const;

private:
    static constexpr std::uint32_t no_place = 0xffffffff;
    static constexpr std::uint32_t column_flag = 0x80000000;

    void place_terms();
    void measure_rows(ThreadPool& pool);
    double row_factor(std::uint32_t row) const;
    // Returns the list number of a term, or lists().list_count() where no row has it.
    std::size_t number_of(std::uint32_t term) const;
    std::uint32_t place_of(std::uint32_t term) const
    {
        const std::size_t number = number_of(term);
        return number < places_.size() ? places_[number] : no_place;
    }
    struct Lost {
        double residual;
        double norm;
    };
    Lost write_row(std::uint32_t row, half_bits* out) const;
    void write_columns(const SparseView& vector, const std::uint32_t* places, Query& query) const;
    void write_items(const SparseView& vector, const std::uint32_t* places, Query& query) const;
    template <class Visit>
    void for_postings(std::uint32_t slice, const Visit& visit) const;
    void count_postings(std::uint32_t slice, std::uint32_t* counts) const;
    std::uint32_t posting_of(std::uint32_t place, std::uint32_t list, double value) const;

    const pgwarp::matchcount::SparseIndex& index_;
    SparseTuning tuning_;
    RowOrder order_;
    std::uint32_t columns_ = 0;
    std::uint32_t lists_ = 0;
    std::uint32_t slices_ = 0;
    std::uint32_t padded_positions_ = 0;
    std::uint64_t list_postings_ = 0;
    std::uint64_t elements_ = 0;
    std::vector<std::uint32_t> places_;  // of each term's list number: a column with column_flag, or a list
    std::vector<double> units_;          // of each list
    std::vector<double> squares_;
    SparseRowBounds bounds_;
};

}  // namespace pgwarp::cuda::matchcount
