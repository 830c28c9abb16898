// The order of continuations: rows after a cursor, by (distance, row).
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

inline bool comes_before(const RowResult& a, const RowResult& b)
{
    return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
}

// Keeps the k first of the offered results.
class FirstRows
{
public:
    explicit FirstRows(std::size_t k) : k_(k) {}

    // Whether offer() would keep the result now.
    bool takes(const RowResult& result) const
    {
        return kept_.size() < k_ || (k_ > 0 && comes_before(result, kept_.front()));
    }
    bool full() const { return kept_.size() == k_; }
    // The distance of the k-th result; only when full() and k > 0.
    double last_distance() const { return kept_.front().distance; }
    void offer(const RowResult& result)
    {
        if (kept_.size() < k_) {
            kept_.push_back(result);
            std::push_heap(kept_.begin(), kept_.end(), comes_before);
        } else if (k_ > 0 && comes_before(result, kept_.front())) {
            std::pop_heap(kept_.begin(), kept_.end(), comes_before);
            kept_.back() = result;
            std::push_heap(kept_.begin(), kept_.end(), comes_before);
        }
    }
    void merge(const FirstRows& other)
    {
        for (const RowResult& result : other.kept_) offer(result);
    }
    std::vector<RowResult> take_sorted()
    {
        std::sort(kept_.begin(), kept_.end(), comes_before);
        return std::move(kept_);
    }

private:
    std::size_t k_;
    std::vector<RowResult> kept_;
};

// Where positions are rows.
inline std::uint32_t row_itself(std::size_t position)
{
    return static_cast<std::uint32_t>(position);
}

// Returns the batch.k first rows strictly after (after_distance, after_row) that the batch's query doesn't leave out.
// row_at(position) returns the row at a position below `count`, distance_at(position) its distance.
inline std::vector<RowResult> scan_in_order(std::size_t count, const SearchBatch& batch, double after_distance,
                                            std::uint32_t after_row,
                                            const std::function<std::uint32_t(std::size_t)>& row_at,
                                            const std::function<double(std::size_t)>& distance_at, ThreadPool& pool)
{
    const RowResult cursor{after_distance, after_row};
    FirstRows first(batch.k);
    std::mutex mutex;
    pool.parallel_for(count, 4096, [&](std::size_t begin, std::size_t end) {
        batch.check_cancel();
        FirstRows local(batch.k);
        for (std::size_t position = begin; position < end; ++position) {
            const std::uint32_t row = row_at(position);
            if (batch.leaves_out(0, row)) continue;
            const RowResult result{distance_at(position), row};
            if (comes_before(cursor, result)) local.offer(result);
        }
        const std::lock_guard lock(mutex);
        first.merge(local);
    });
    return first.take_sorted();
}

}  // namespace pgwarp
