// The rows of an index in the order of their heap addresses, and those that have an address of a bitmap. Made when a
// bitmap first comes. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/filter/tid_bitmap.h"
#include "methods/once.h"
#include "numeric/parallel.h"

namespace pgwarp
{

class TidOrder
{
public:
    // The addresses of the rows, which may be filled later, but before a bitmap comes; they outlive this.
    TidOrder(std::span<const std::uint32_t> blocks, std::span<const std::uint16_t> offsets);

    bool is_ready() const { return ready_.load(std::memory_order_acquire); }
    // The rows that have an address of the bitmap, in the order of addresses. Dead rows are among them.
    std::vector<std::uint32_t> rows_of(const TidBitmap& bitmap, ThreadPool& pool);
    // About their number, without making the order.
    std::uint64_t estimate(const TidBitmap& bitmap) const;
    std::uint64_t memory_bytes() const;

private:
    void make(ThreadPool& pool);
    bool is_sorted(ThreadPool& pool) const;
    void make_directory();
    // Places in the order of addresses.
    struct Places {
        std::size_t begin;
        std::size_t end;
    };
    Places places_of(std::uint32_t block) const;
    std::size_t first_at(Places places, std::uint16_t offset) const;
    void bring_entry_near(const TidPage& page) const;
    void bring_rows_near(const TidPage& page) const;
    void add_rows_of(const TidPage& page, std::vector<std::uint32_t>& rows) const;
    void add_rows_at(Places places, std::uint16_t offset, std::vector<std::uint32_t>& rows) const;
    std::uint32_t row_at(std::size_t place) const
    {
        return rows_.empty() ? static_cast<std::uint32_t>(place) : rows_[place];
    }

    std::span<const std::uint32_t> blocks_;
    std::span<const std::uint16_t> offsets_;
    Once made_;
    std::atomic<bool> ready_{false};
    std::vector<std::uint32_t> rows_;   // by address; empty where that is the order of the rows
    std::vector<std::uint32_t> first_;  // the place of the first row of 2^shift_ blocks or later ones
    unsigned shift_ = 0;
};

}  // namespace pgwarp
