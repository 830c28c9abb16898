// Counts, lists and bitmaps of the rows that pass a predicate.
#include "engine/filter/filter_index.h"

#include <algorithm>
#include <bit>

#include "protocol/predicate_hash.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t sampled = 1024;  // rows of the narrowest term by which the other terms are judged
constexpr std::size_t most_some = 64;
constexpr std::size_t scanned_words = 1024;  // of a bitmap, that a thread fills at a time
constexpr std::uint64_t scan_share = 16;     // a list of fewer than this part of the rows makes the bitmap
constexpr std::size_t most_kept = 256;       // lists and bitmaps
constexpr std::uint64_t least_kept_bytes = std::uint64_t{4} << 20;

bool passes_all(std::span<const std::uint64_t> predicate)
{
    return predicate.empty() || predicate[0] == 0;
}

std::size_t terms_of(std::span<const std::uint64_t> predicate)
{
    return predicate.empty() ? 0 : static_cast<std::size_t>(predicate[0]);
}

// Whether the rows that pass lie one after the other in the order of a column.
bool is_stretch(std::span<const std::uint64_t> predicate)
{
    return terms_of(predicate) == 1 && predicate[1] >> 32 == 1;
}

// Calls visit(rows) with the rows of each range of a term.
template <class Visit>
void for_each_range(const ColumnOrder& order, const PredicateTerm& term, const Visit& visit)
{
    for (std::size_t i = 0; i < term.range_count(); ++i) visit(order.rows_of(term.range(i)));
}

// Keeps `most` of the rows, or fewer, at even distances.
void thin_out(std::vector<std::uint32_t>& rows, std::size_t most)
{
    const std::size_t step = (rows.size() + most - 1) / most;
    if (step <= 1) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows.size(); i += step) rows[kept++] = rows[i];
    rows.resize(kept);
}

}  // namespace

FilterIndex::FilterIndex(std::span<const std::uint64_t> attributes, std::size_t columns, std::size_t rows)
    : attributes_(attributes), columns_(columns), rows_(rows), orders_(columns)
{
}

const ColumnOrder& FilterIndex::order(std::size_t column, ThreadPool& pool)
{
    Column& wanted = orders_[column];
    wanted.made.run([&] {
        wanted.order = std::make_unique<const ColumnOrder>(attributes_, columns_, column, pool);
        wanted.ready.store(true, std::memory_order_release);
    });
    return *wanted.order;
}

bool FilterIndex::is_ready(std::span<const std::uint64_t> predicate) const
{
    if (passes_all(predicate)) return true;
    PredicateTerms terms(predicate);
    PredicateTerm term;
    while (terms.next(&term))
        if (!orders_[term.column].ready.load(std::memory_order_acquire)) return false;
    return true;
}

// The term that the fewest rows pass.
FilterIndex::Narrowest FilterIndex::narrowest_term(std::span<const std::uint64_t> predicate, ThreadPool& pool)
{
    Narrowest narrowest{{}, rows_ + 1};
    PredicateTerms terms(predicate);
    PredicateTerm term;
    while (terms.next(&term)) {
        const std::uint64_t count = order(term.column, pool).count(term);
        if (count < narrowest.rows) narrowest = {term, count};
    }
    return narrowest;
}

PassCount FilterIndex::count(std::span<const std::uint64_t> predicate, ThreadPool& pool)
{
    PassCount count;
    if (passes_all(predicate)) {
        count.rows = count.listed = rows_;
        count.exact = true;
        return count;
    }
    const Narrowest narrowest = narrowest_term(predicate, pool);
    const bool alone = terms_of(predicate) == 1;
    const std::uint64_t step = std::max<std::uint64_t>(narrowest.rows / (alone ? most_some : sampled), 1);
    const std::uint64_t tested =
        sample_term(narrowest, alone ? std::span<const std::uint64_t>() : predicate, step, pool, count.some);
    count.listed = narrowest.rows;
    count.exact = alone || step == 1;
    if (alone) {
        count.rows = narrowest.rows;
    } else if (tested > 0) {
        // Of a sample in which no row passes, half a row is taken to pass.
        const std::uint64_t halves =
            count.exact ? 2 * count.some.size() : std::max<std::uint64_t>(2 * count.some.size(), 1);
        count.rows = narrowest.rows * halves / (2 * tested);
    }
    thin_out(count.some, most_some);
    return count;
}

// Takes every step-th row of the term, and tests it by the predicate where there is one. Appends those that pass, and
// returns the number of rows taken.
std::uint64_t FilterIndex::sample_term(const Narrowest& narrowest, std::span<const std::uint64_t> predicate,
                                       std::uint64_t step, ThreadPool& pool, std::vector<std::uint32_t>& passed)
{
    std::uint64_t tested = 0;
    std::uint64_t next = 0;    // place among the rows of the term
    std::uint64_t before = 0;  // rows of the ranges before
    for_each_range(order(narrowest.term.column, pool), narrowest.term, [&](std::span<const std::uint32_t> rows) {
        for (; next < before + rows.size(); next += step) {
            ++tested;
            const std::uint32_t row = rows[next - before];
            if (predicate.empty() || passes(predicate, attributes_.data() + row * columns_)) passed.push_back(row);
        }
        before += rows.size();
    });
    return tested;
}

// Lists the rows that pass, from those of the narrowest term.
std::shared_ptr<const PassingRows> FilterIndex::list(std::span<const std::uint64_t> predicate, ThreadPool& pool)
{
    auto list = std::make_shared<PassingRows>();
    if (passes_all(predicate)) {
        list->own = rows_outside({}, rows_);
        list->rows = list->own;
        return list;
    }
    const Narrowest narrowest = narrowest_term(predicate, pool);
    const ColumnOrder& rows = order(narrowest.term.column, pool);
    if (terms_of(predicate) == 1 && narrowest.term.range_count() == 1) {
        list->rows = rows.rows_of(narrowest.term.range(0));
        return list;
    }
    const bool all = terms_of(predicate) == 1;
    if (all) list->own.reserve(narrowest.rows);
    for_each_range(rows, narrowest.term, [&](std::span<const std::uint32_t> some) {
        if (all) {
            list->own.insert(list->own.end(), some.begin(), some.end());
            return;
        }
        for (const std::uint32_t row : some)
            if (passes(predicate, attributes_.data() + row * columns_)) list->own.push_back(row);
    });
    list->rows = list->own;
    return list;
}

std::shared_ptr<const PassingRows> FilterIndex::passing(std::span<const std::uint64_t> predicate, ThreadPool& pool)
{
    if (is_stretch(predicate)) return list(predicate, pool);
    {
        const std::lock_guard lock(mutex_);
        if (const Kept* kept = find_kept(predicate, [](const Kept& one) { return one.passing != nullptr; }))
            return kept->passing;
    }
    std::shared_ptr<const PassingRows> made = list(predicate, pool);
    if (!made->own.empty())
        keep({{predicate.begin(), predicate.end()}, 0, made, nullptr, made->own.size() * sizeof(std::uint32_t)});
    return made;
}

// Fills the bitmap word by word: the codes are read in order.
void FilterIndex::mark_by_scan(std::span<const std::uint64_t> predicate, std::span<std::uint64_t> fails,
                               ThreadPool& pool) const
{
    const std::size_t count = rows_;
    pool.parallel_for(fails.size(), scanned_words, [&](std::size_t begin, std::size_t end) {
        for (std::size_t word = begin; word < end; ++word) {
            const std::size_t rows = std::min<std::size_t>(64, count - 64 * word);
            std::uint64_t passed = ~std::uint64_t{0};
            PredicateTerms terms(predicate);
            PredicateTerm term;
            while (terms.next(&term) && passed != 0) {
                const std::uint64_t* codes = attributes_.data() + 64 * word * columns_ + term.column;
                std::uint64_t in_term = 0;
                if (term.range_count() == 1) {
                    const CodeRange range = term.range(0);
                    for (std::size_t i = 0; i < rows; ++i)
                        in_term |= std::uint64_t{codes[i * columns_] - range.first <= range.last - range.first} << i;
                } else {
                    for (std::size_t i = 0; i < rows; ++i)
                        in_term |= std::uint64_t{term.contains(codes[i * columns_])} << i;
                }
                passed &= in_term;
            }
            fails[word] = ~passed;
        }
    });
}

FailingRows FilterIndex::mark(std::span<const std::uint64_t> predicate, RowBitmap dead, ThreadPool& pool)
{
    FailingRows failing;
    failing.version = new_bitmap_version();
    const std::size_t words = (rows_ + 63) / 64;
    if (passes_all(predicate)) {
        failing.bits.assign(words, 0);
    } else if (narrowest_term(predicate, pool).rows < rows_ / scan_share) {
        failing.bits.assign(words, ~std::uint64_t{0});
        const std::shared_ptr<const PassingRows> passed = passing(predicate, pool);
        for (const std::uint32_t row : passed->rows) failing.bits[row / 64] &= ~(std::uint64_t{1} << (row % 64));
    } else {
        failing.bits.resize(words);
        mark_by_scan(predicate, failing.bits, pool);
    }
    if (rows_ % 64 != 0) failing.bits.back() &= (std::uint64_t{1} << (rows_ % 64)) - 1;
    std::uint64_t out = 0;
    for (std::size_t word = 0; word < words; ++word) {
        if (!dead.empty()) failing.bits[word] |= dead[word];
        out += static_cast<std::uint64_t>(std::popcount(failing.bits[word]));
    }
    failing.live = rows_ - out;
    return failing;
}

std::shared_ptr<const FailingRows> FilterIndex::failing(std::span<const std::uint64_t> predicate, RowBitmap dead,
                                                        std::uint64_t dead_version, ThreadPool& pool)
{
    // Without a version there is no telling whether the dead rows are others by now.
    if (dead_version == 0 && !dead.empty()) return std::make_shared<const FailingRows>(mark(predicate, dead, pool));
    const auto is_it = [&](const Kept& one) { return one.failing != nullptr && one.dead_version == dead_version; };
    {
        const std::lock_guard lock(mutex_);
        if (const Kept* kept = find_kept(predicate, is_it)) return kept->failing;
    }
    auto made = std::make_shared<const FailingRows>(mark(predicate, dead, pool));
    keep(
        {{predicate.begin(), predicate.end()}, dead_version, nullptr, made, made->bits.size() * sizeof(std::uint64_t)});
    return made;
}

// Call with the mutex held. Valid until it is released.
template <class IsIt>
const FilterIndex::Kept* FilterIndex::find_kept(std::span<const std::uint64_t> predicate, const IsIt& is_it)
{
    const auto [begin, end] = by_hash_.equal_range(predicate_hash(predicate));
    for (auto at = begin; at != end; ++at) {
        const KeptList::iterator one = at->second;
        if (!is_it(*one) || !std::ranges::equal(one->predicate, predicate)) continue;
        kept_.splice(kept_.begin(), kept_, one);
        return &*one;
    }
    return nullptr;
}

// Keeps what was made, and drops what was not used for longest: no more than the attributes take.
void FilterIndex::keep(Kept&& made)
{
    const std::uint64_t most = std::max<std::uint64_t>(attributes_.size_bytes(), least_kept_bytes);
    made.bytes += made.predicate.size() * sizeof(std::uint64_t) + sizeof(Kept);
    if (made.bytes > most) return;
    KeptList dropped;  // outlives the lock
    const std::lock_guard lock(mutex_);
    kept_bytes_ += made.bytes;
    kept_.push_front(std::move(made));
    by_hash_.emplace(predicate_hash(kept_.front().predicate), kept_.begin());
    while (kept_bytes_ > most || kept_.size() > most_kept) {
        const auto last = std::prev(kept_.end());
        kept_bytes_ -= last->bytes;
        const auto [begin, end] = by_hash_.equal_range(predicate_hash(last->predicate));
        by_hash_.erase(std::find_if(begin, end, [&](const auto& one) { return one.second == last; }));
        dropped.splice(dropped.begin(), kept_, last);
    }
}

std::uint64_t FilterIndex::memory_bytes() const
{
    std::uint64_t bytes = 0;
    for (const Column& column : orders_)
        if (column.ready.load(std::memory_order_acquire)) bytes += column.order->memory_bytes();
    const std::lock_guard lock(mutex_);
    return bytes + kept_bytes_;
}

}  // namespace pgwarp
