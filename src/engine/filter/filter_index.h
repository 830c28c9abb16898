// What a mirror knows of the attributes of its rows: each column's order, made when a predicate first asks for it; the
// number of rows that pass a predicate, and these rows, as a list or as a bitmap. Lists and bitmaps that come again are
// kept, within bounds. Delta rows are not among these rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/filter/column_order.h"
#include "methods/once.h"
#include "methods/row_bitmap.h"
#include "protocol/format.h"

namespace pgwarp
{

// The number of rows that pass a predicate.
struct PassCount {
    std::uint64_t rows = 0;
    bool exact = false;               // else estimated by a sample
    std::uint64_t listed = 0;         // rows of the term with the fewest, which a list is made from
    std::vector<std::uint32_t> some;  // some rows that pass, from all over the index
};

// The rows that pass a predicate, in no certain order.
struct PassingRows {
    std::vector<std::uint32_t> own;  // where no order has them one after the other
    std::span<const std::uint32_t> rows;
};

// A bitmap of the rows that fail a predicate or are dead.
struct FailingRows {
    std::vector<std::uint64_t> bits;
    std::uint64_t version = 0;  // new_bitmap_version()
    std::uint64_t live = 0;     // rows that pass and are not dead
};

// Thread-safe.
class FilterIndex
{
public:
    // attributes [rows][columns] may be filled later, but before a predicate comes; they outlive this.
    FilterIndex(std::span<const std::uint64_t> attributes, std::size_t columns, std::size_t rows);

    std::size_t columns() const { return columns_; }
    const std::uint64_t* attributes() const { return attributes_.data(); }

    // Whether the orders are made that count() needs.
    bool is_ready(std::span<const std::uint64_t> predicate) const;
    PassCount count(std::span<const std::uint64_t> predicate, ThreadPool& pool);
    std::shared_ptr<const PassingRows> passing(std::span<const std::uint64_t> predicate, ThreadPool& pool);
    // dead_version: of `dead`, as in SearchBatch.
    std::shared_ptr<const FailingRows> failing(std::span<const std::uint64_t> predicate, RowBitmap dead,
                                               std::uint64_t dead_version, ThreadPool& pool);
    std::uint64_t memory_bytes() const;

private:
    struct Column {
        Once made;
        std::unique_ptr<const ColumnOrder> order;
        std::atomic<bool> ready{false};
    };
    struct Kept {
        std::vector<std::uint64_t> predicate;
        std::uint64_t dead_version = 0;  // of a bitmap
        std::shared_ptr<const PassingRows> passing;
        std::shared_ptr<const FailingRows> failing;
        std::uint64_t bytes = 0;
    };
    using KeptList = std::list<Kept>;
    struct Narrowest {
        PredicateTerm term;
        std::uint64_t rows;
    };

    const ColumnOrder& order(std::size_t column, ThreadPool& pool);
    Narrowest narrowest_term(std::span<const std::uint64_t> predicate, ThreadPool& pool);
    std::uint64_t sample_term(const Narrowest& narrowest, std::span<const std::uint64_t> predicate, std::uint64_t step,
                              ThreadPool& pool, std::vector<std::uint32_t>& passed);
    std::shared_ptr<const PassingRows> list(std::span<const std::uint64_t> predicate, ThreadPool& pool);
    FailingRows mark(std::span<const std::uint64_t> predicate, RowBitmap dead, ThreadPool& pool);
    void mark_by_scan(std::span<const std::uint64_t> predicate, std::span<std::uint64_t> fails, ThreadPool& pool) const;
    template <class IsIt>
    const Kept* find_kept(std::span<const std::uint64_t> predicate, const IsIt& is_it);
    void keep(Kept&& made);

    std::span<const std::uint64_t> attributes_;
    std::size_t columns_;
    std::size_t rows_;
    std::vector<Column> orders_;
    mutable std::mutex mutex_;                                          // guards what follows
    KeptList kept_;                                                     // the latest used first
    std::unordered_multimap<std::size_t, KeptList::iterator> by_hash_;  // of the predicates
    std::uint64_t kept_bytes_ = 0;
};

}  // namespace pgwarp
