#include "matchcount/sparse_form.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <new>

#include "distance/added_place.h"
#include "distance/score_bound.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int stored_exponent = 12;   // the largest half is stored below 2^12
constexpr double slack = 0x1p-40;     // covers the roundings of units and multipliers in float64
constexpr double float_limit = 1e36;  // scores stay below it
constexpr std::uint32_t tile = 128;

// The power of two that brings `largest` just below 2^stored_exponent.
double scale_for(double largest)
{
    if (!(largest > 0)) return 1;
    int exponent = 0;
    (void)std::frexp(largest, &exponent);
    return std::ldexp(1.0, stored_exponent - exponent);
}

// Returns a float that is not smaller.
float float_from(double value)
{
    const auto rounded = static_cast<float>(value);
    return static_cast<double>(rounded) < value ? std::nextafter(rounded, std::numeric_limits<float>::infinity())
                                                : rounded;
}

std::uint32_t quads_of(std::uint32_t postings)
{
    return (postings + quad_postings - 1) / quad_postings;
}

}  // namespace

SparseForm::SparseForm(const pgwarp::matchcount::SparseIndex& index, const SparseTuning& tuning, ThreadPool& pool)
    : index_(index), tuning_(tuning), order_(make_row_order(index.rows(), 1))
{
    padded_positions_ = (order_.positions() + tile - 1) / tile * tile;
    slices_ = (padded_positions_ + tuning_.slice - 1) / tuning_.slice;
    place_terms();
    const std::uint64_t starts = std::uint64_t{slices_} * (lists_ + 1);
    if (list_postings_ >> 32 != 0 || starts > 2 * elements_ + (std::uint64_t{1} << 22)) throw std::bad_alloc();
    bounds_.metric = index_.metric();
    bounds_.summation = summation_error(columns_);
    measure_rows(pool);
}

void SparseForm::place_terms()
{
    const pgwarp::matchcount::KeywordLists& all = index_.lists();
    const auto frequency = [&](std::size_t number) { return all.start(number + 1) - all.start(number); };
    places_.assign(all.list_count(), no_place);
    std::vector<std::size_t> frequent;
    for (std::size_t number = 0; number < all.list_count(); ++number) {
        elements_ += frequency(number);
        if (frequency(number) > 0) frequent.push_back(number);
    }
    const std::size_t columns = std::min<std::size_t>(frequent.size(), tuning_.columns);
    std::nth_element(frequent.begin(), frequent.begin() + static_cast<std::ptrdiff_t>(columns), frequent.end(),
                     [&](std::size_t a, std::size_t b) {
                         return frequency(a) != frequency(b) ? frequency(a) > frequency(b) : a < b;
                     });
    for (std::size_t i = 0; i < columns; ++i) places_[frequent[i]] = column_flag | static_cast<std::uint32_t>(i);
    columns_ = std::max(64U, static_cast<std::uint32_t>((columns + 63) / 64 * 64));
    for (std::size_t number = 0; number < all.list_count(); ++number) {
        if (frequency(number) == 0 || places_[number] != no_place) continue;
        places_[number] = lists_++;
        units_.push_back(index_.largest_value(number) / pgwarp::matchcount::most_value_number * (1 + slack));
        list_postings_ += frequency(number);
    }
}

double SparseForm::row_factor(std::uint32_t row) const
{
    if (bounds_.metric != Metric::cosine) return 1;
    return squares_[row] > 0 ? 1 / std::sqrt(squares_[row]) : 0;
}

std::size_t SparseForm::number_of(std::uint32_t term) const
{
    const auto numbers = index_.lists().numbers({term, term});
    return numbers.first == numbers.last ? places_.size() : numbers.first;
}

void SparseForm::measure_rows(ThreadPool& pool)
{
    squares_.resize(rows());
    std::mutex mutex;
    double largest = 0;  // of the columns
    double square = 0;
    pool.parallel_for(rows(), 1024, [&](std::size_t begin, std::size_t end) {
        double own_largest = 0;
        double own_square = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const auto row = static_cast<std::uint32_t>(i);
            const SparseView vector = index_.row(row);
            squares_[i] = sparse_norm_squared(vector);
            own_square = std::max(own_square, squares_[i]);
            const double factor = row_factor(row);
            for (std::size_t at = 0; at < vector.count; ++at) {
                const std::uint32_t place = place_of(vector.indices[at]);
                if (place != no_place && (place & column_flag) != 0)
                    own_largest = std::max(own_largest, std::abs(vector.values[at] * factor));
            }
        }
        const std::lock_guard lock(mutex);
        largest = std::max(largest, own_largest);
        square = std::max(square, own_square);
    });
    bounds_.scale = scale_for(largest);
    bounds_.largest_norm = bounds_.metric == Metric::cosine ? 1 + 1e-12 : std::sqrt(square) * (1 + 1e-12);
}

bool SparseForm::in_range() const
{
    const double norm = bounds_.largest_norm;
    return norm * norm * bounds_.scale < float_limit && bounds_.scale < float_limit && bounds_.scale > 1 / float_limit;
}

SparseForm::Lost SparseForm::write_row(std::uint32_t row, half_bits* out) const
{
    const SparseView vector = index_.row(row);
    const double factor = row_factor(row) * bounds_.scale;
    double residual = 0;
    double square = 0;
    for (std::size_t at = 0; at < vector.count; ++at) {
        const std::uint32_t place = place_of(vector.indices[at]);
        if ((place & column_flag) == 0 || place == no_place) continue;
        const double exact = vector.values[at] * factor;
        const half_bits stored = half_of_float(static_cast<float>(exact));
        const double kept = float_of_half(stored);
        out[place & ~column_flag] = stored;
        residual += (exact - kept) * (exact - kept);
        square += kept * kept;
    }
    return {std::sqrt(residual) * (1 + 1e-9), std::sqrt(square) * (1 + 1e-9)};
}

void SparseForm::write_halves(std::uint32_t first, std::uint32_t count, half_bits* out, ThreadPool& pool)
{
    std::mutex mutex;
    pool.parallel_for(count, 1024, [&](std::size_t begin, std::size_t end) {
        Lost worst{0, 0};
        for (std::size_t i = begin; i < end; ++i) {
            half_bits* const halves = out + i * columns_;
            std::fill_n(halves, columns_, half_bits{0});
            const std::uint32_t row = order_.row_of(first + static_cast<std::uint32_t>(i));
            if (row >= rows()) continue;
            const Lost lost = write_row(row, halves);
            worst = {std::max(worst.residual, lost.residual), std::max(worst.norm, lost.norm)};
        }
        const std::lock_guard lock(mutex);
        bounds_.residual = std::max(bounds_.residual, worst.residual);
        bounds_.norm = std::max(bounds_.norm, worst.norm);
    });
}

std::vector<float> SparseForm::penalties() const
{
    std::vector<float> out(padded_positions_, std::numeric_limits<float>::infinity());
    for (std::uint32_t position = 0; position < order_.positions(); ++position) {
        const std::uint32_t row = order_.row_of(position);
        if (row >= rows() || (bounds_.metric == Metric::cosine && !(squares_[row] > 0))) continue;
        out[position] = bounds_.metric == Metric::l2 ? static_cast<float>(bounds_.scale * squares_[row] / 2) : 0.0F;
    }
    return out;
}

std::uint32_t SparseForm::posting_of(std::uint32_t place, std::uint32_t list, double value) const
{
    // The unit is a little more than a 32767th of the largest value, so no number is larger than 32767.
    const double number = units_[list] > 0 ? std::ceil(std::abs(value) / units_[list]) : 0;
    const int whole = static_cast<int>(value < 0 ? -number : number);
    return static_cast<std::uint32_t>(whole) << 16 | place;
}

// visit(place in the slice, list, value) for the postings of a slice.
template <class Visit>
void SparseForm::for_postings(std::uint32_t slice, const Visit& visit) const
{
    for (std::uint32_t i = 0; i < tuning_.slice; ++i) {
        const std::uint32_t row = order_.row_of(slice * tuning_.slice + i);
        if (row >= rows()) continue;
        const SparseView vector = index_.row(row);
        const double factor = row_factor(row);
        for (std::size_t at = 0; at < vector.count; ++at) {
            const std::uint32_t place = place_of(vector.indices[at]);
            if ((place & column_flag) == 0) visit(added_place(i), place, vector.values[at] * factor);
        }
    }
}

// counts: [lists()], zeros.
void SparseForm::count_postings(std::uint32_t slice, std::uint32_t* counts) const
{
    for_postings(slice, [&](std::uint32_t, std::uint32_t list, double) { ++counts[list]; });
}

std::uint64_t SparseForm::count_quads(ThreadPool& pool) const
{
    std::atomic<std::uint64_t> quads{0};
    pool.parallel_for(slices_, 1, [&](std::size_t begin, std::size_t end) {
        std::vector<std::uint32_t> counts;
        for (std::size_t slice = begin; slice < end; ++slice) {
            counts.assign(lists_, 0);
            count_postings(static_cast<std::uint32_t>(slice), counts.data());
            std::uint64_t own = 0;
            for (const std::uint32_t count : counts) own += quads_of(count);
            quads += own;
        }
    });
    return quads;
}

SparseSlices SparseForm::make_slices(std::uint32_t first, std::uint32_t count, std::uint64_t quad_base,
                                     ThreadPool& pool) const
{
    SparseSlices made;
    const std::size_t width = std::size_t{lists_} + 1;
    std::vector<std::uint32_t> counts(count * width);
    pool.parallel_for(count, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            count_postings(first + static_cast<std::uint32_t>(i), counts.data() + i * width);
    });
    made.starts.resize(count * width);
    std::uint64_t next = quad_base;
    for (std::size_t i = 0; i < made.starts.size(); ++i) {
        made.starts[i] = static_cast<std::uint32_t>(next);
        next += quads_of(counts[i]);
    }
    made.postings.resize((next - quad_base) * quad_postings);
    pool.parallel_for(count, 1, [&](std::size_t begin, std::size_t end) {
        std::vector<std::size_t> places(lists_);
        for (std::size_t i = begin; i < end; ++i) {
            const std::uint32_t* const starts = made.starts.data() + i * width;
            for (std::size_t list = 0; list < lists_; ++list) places[list] = (starts[list] - quad_base) * quad_postings;
            for_postings(first + static_cast<std::uint32_t>(i),
                         [&](std::uint32_t place, std::uint32_t list, double value) {
                             made.postings[places[list]++] = posting_of(place, list, value);
                         });
        }
    });
    return made;
}

// Sets factor, norm and residual.
void SparseForm::write_columns(const SparseView& vector, const std::uint32_t* places, Query& query) const
{
    double largest = 0;
    const auto for_columns = [&](const auto& visit) {
        for (std::size_t at = 0; at < vector.count; ++at) {
            const std::uint32_t place = places[at];
            if (place != no_place && (place & column_flag) != 0) visit(place & ~column_flag, double{vector.values[at]});
        }
    };
    for_columns([&](std::uint32_t, double value) { largest = std::max(largest, std::abs(value)); });
    const double scale = scale_for(largest);
    double residual = 0;
    double square = 0;
    for_columns([&](std::uint32_t column, double value) {
        const double exact = value * scale;
        query.halves[column] = half_of_float(static_cast<float>(exact));
        const double kept = float_of_half(query.halves[column]);
        residual += (exact - kept) * (exact - kept);
        square += kept * kept;
    });
    query.factor = static_cast<float>(1 / scale);
    query.bound.norm = std::sqrt(square) / scale * (1 + 1e-9);
    query.bound.residual = std::sqrt(residual) / scale * (1 + 1e-9);
    query.usable = query.usable && 1 / scale > 1 / float_limit && 1 / scale < float_limit;
}

// The addends of a pair are at most the multipliers and 1 each, and a multiplier is at most 1 more than its quotient.
void SparseForm::write_items(const SparseView& vector, const std::uint32_t* places, Query& query) const
{
    query.item_count = 0;
    double total = 0;
    const auto for_items = [&](const auto& visit) {
        for (std::size_t at = 0; at < vector.count; ++at) {
            const std::uint32_t place = places[at];
            if ((place & column_flag) != 0 || vector.values[at] == 0 || units_[place] == 0) continue;
            visit(place, vector.values[at], std::abs(vector.values[at] * units_[place]) * 0x1p15 * (1 + slack));
        }
    };
    std::uint32_t count = 0;
    for_items([&](std::uint32_t, float, double weight) {
        total += weight;
        ++count;
    });
    query.unit = 0;
    query.bound.lists = 0;
    if (count == 0) return;
    const double of_addend = total * (1 + slack) / (most_sum - 2 * count);
    for_items([&](std::uint32_t list, float value, double weight) {
        const auto multiplier = static_cast<std::int32_t>(std::ceil(weight / of_addend));
        query.items[query.item_count++] = {list, value < 0 ? -multiplier : multiplier};
    });
    const double unit = of_addend * sum_units * bounds_.scale * (1 + slack);
    query.unit = float_from(unit);
    query.bound.lists = double{query.unit} * 255;
    query.usable = query.usable && query.bound.lists < float_limit;
}

void SparseForm::write_query(const SparseView& vector, Query& query) const
{
    query.bound = {};
    query.square = sparse_norm_squared(vector);
    query.bound.own_norm = std::sqrt(query.square);
    query.usable = vector.count <= most_query_elements && (bounds_.metric != Metric::cosine || query.square > 0);
    query.item_count = 0;
    if (vector.count > most_query_elements) return;
    std::array<std::uint32_t, most_query_elements> places;
    for (std::size_t at = 0; at < vector.count; ++at) places[at] = place_of(vector.indices[at]);
    write_columns(vector, places.data(), query);
    write_items(vector, places.data(), query);
    query.usable =
        query.usable && query.bound.norm * bounds_.norm < float_limit && query.square * bounds_.scale < float_limit;
}

}  // namespace pgwarp::cuda::matchcount
