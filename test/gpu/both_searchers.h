// One index on the CPU and on the device, which must answer alike: to the bit, and in the same order of ties.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "methods/method.h"
#include "methods/rows/owned_rows.h"
#include "methods/rows/stored_lists.h"

namespace pgwarp::test
{

// The distance before those of all rows.
inline constexpr double from_front = -std::numeric_limits<double>::infinity();

inline void expect_equal(const std::vector<RowResult>& found, const std::vector<RowResult>& wanted)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].distance, wanted[i].distance) << "result " << i;
        ASSERT_EQ(found[i].row, wanted[i].row) << "result " << i;
    }
}

class BothSearchers
{
public:
    Searcher& device() { return *device_; }
    ThreadPool& pool() { return pool_; }

    void expect_same(const SearchBatch& batch)
    {
        std::vector<std::vector<RowResult>> wanted;
        std::vector<std::vector<RowResult>> found;
        cpu_->search(batch, wanted, pool_);
        device_->search(batch, found, pool_);
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t i = 0; i < batch.count; ++i) {
            SCOPED_TRACE("query " + std::to_string(i) + ", k " + std::to_string(batch.k));
            ASSERT_NO_FATAL_FAILURE(expect_equal(found[i], wanted[i]));
        }
    }
    // The results of the first query behind a row.
    void expect_same_continuation(const SearchBatch& batch, const RowResult& after)
    {
        std::vector<RowResult> wanted;
        continue_both(batch, after, wanted);
    }
    // The same behind each last result, up to the end.
    void expect_same_continuations(const SearchBatch& batch)
    {
        std::vector<RowResult> wanted;
        RowResult after{from_front, 0};
        do {
            ASSERT_NO_FATAL_FAILURE(continue_both(batch, after, wanted));
            if (!wanted.empty()) after = wanted.back();
        } while (!wanted.empty());
    }
    // Searches among certain rows, from the nearest on.
    void expect_same_among(const SearchBatch& batch, std::span<const RowList> rows)
    {
        std::vector<std::vector<RowResult>> wanted;
        std::vector<std::vector<RowResult>> found;
        cpu_->search_among(batch, rows, before_all, wanted, pool_);
        device_->search_among(batch, rows, before_all, found, pool_);
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t i = 0; i < batch.count; ++i) ASSERT_NO_FATAL_FAILURE(expect_equal(found[i], wanted[i]));
    }
    // Cancels searches of the batch from another thread, each at a later time; in between its first `count` queries
    // have the same answers.
    void expect_same_between_cancelled(const SearchBatch& batch, std::size_t count)
    {
        int cancelled = 0;
        for (int round = 0; round < 12; ++round) {
            CancelToken cancel;
            SearchBatch all = batch;
            all.cancel = &cancel;
            std::thread other([&cancel, round] {
                std::this_thread::sleep_for(std::chrono::milliseconds(2 * round));
                cancel.cancel();
            });
            std::vector<std::vector<RowResult>> found;
            try {
                device_->search(all, found, pool_);
            } catch (const Cancelled&) {
                ++cancelled;
            }
            other.join();
            all.cancel = nullptr;
            all.count = count;
            ASSERT_NO_FATAL_FAILURE(expect_same(all));
        }
        EXPECT_GT(cancelled, 0);
    }

protected:
    BothSearchers() : pool_(0) {}

    Searcher& cpu() { return *cpu_; }
    void set(std::unique_ptr<Searcher> cpu, std::unique_ptr<Searcher> device)
    {
        cpu_ = std::move(cpu);
        device_ = std::move(device);
    }
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
    {
        cpu_->write(array, offset, bytes);
        device_->write(array, offset, bytes);
    }
    void finish_load()
    {
        cpu_->finish_load(pool_);
        device_->finish_load(pool_);
    }
    // Loads rows that are lists.
    void load(const OwnedRows& rows, std::span<const ArrayShape> arrays)
    {
        for (const ArrayShape& array : arrays) {
            std::vector<std::byte> bytes(array.bytes());
            read_list_array(rows.view(), array.name, 0, bytes);
            write(array.name, 0, bytes);
        }
        finish_load();
    }

private:
    void continue_both(const SearchBatch& batch, const RowResult& after, std::vector<RowResult>& wanted)
    {
        std::vector<RowResult> found;
        cpu_->search_exact(batch, after.distance, after.row, wanted, pool_);
        device_->search_exact(batch, after.distance, after.row, found, pool_);
        ASSERT_NO_FATAL_FAILURE(expect_equal(found, wanted));
    }

    ThreadPool pool_;
    std::unique_ptr<Searcher> cpu_;
    std::unique_ptr<Searcher> device_;
};

// An index without rows has no arrays.
inline std::vector<ArrayShape> arrays_of(const OwnedRows& rows)
{
    return rows.count() > 0 ? list_arrays(rows.view()) : std::vector<ArrayShape>{};
}

// A batch of queries that are lists.
inline SearchBatch batch_of(const OwnedRows& queries, std::uint32_t k)
{
    SearchBatch batch;
    batch.lists = queries.view();
    batch.count = queries.view().count;
    batch.k = k;
    return batch;
}

}  // namespace pgwarp::test
