// The groups of threads that searches on a device run in (cuda/graph/traversal.h), of threads of the CPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "graph/traversal.h"

namespace pgwarp::test
{

class HostGroup
{
public:
    static constexpr bool exclusive = true;

    HostGroup(std::uint32_t rank, std::uint32_t size, std::barrier<>* barrier)
        : rank_(rank), size_(size), barrier_(barrier)
    {
    }
    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return size_; }
    void sync() const
    {
        if (barrier_ != nullptr) barrier_->arrive_and_wait();
    }
    std::uint32_t count(std::uint32_t* word, bool asks) const { return asks ? std::atomic_ref(*word).fetch_add(1) : 0; }
    void count_one(std::uint32_t* word) const { count(word, true); }
    std::uint32_t set_bits(std::uint32_t* word, std::uint32_t bits) const
    {
        return std::atomic_ref(*word).fetch_or(bits);
    }
    std::uint32_t load(std::uint32_t* word) const { return std::atomic_ref(*word).load(); }
    void store(std::uint32_t* word, std::uint32_t value) const { std::atomic_ref(*word).store(value); }
    void lower(std::uint32_t* word, std::uint32_t value) const
    {
        std::atomic_ref reference(*word);
        std::uint32_t there = reference.load();
        while (value < there && !reference.compare_exchange_weak(there, value)) {
        }
    }
    std::uint32_t compare_and_swap(std::uint32_t* word, std::uint32_t expected, std::uint32_t desired) const
    {
        std::atomic_ref(*word).compare_exchange_strong(expected, desired);
        return expected;
    }
    static void prefetch(const void*, std::uint32_t) {}
    static std::uint32_t sharer_bits(std::uint32_t) { return 0; }
    static std::uint32_t sum(std::uint32_t, std::uint32_t value) { return value; }
    static std::uint32_t least(std::uint32_t, std::uint32_t value) { return value; }
    // Each thread is a warp of its own.
    std::uint32_t warp() const { return rank_; }
    std::uint32_t first_of_warp() const { return rank_; }
    template <class Matches>
    std::uint32_t first_matches(std::uint32_t begin, std::uint32_t end, std::uint32_t most, const Matches& matches,
                                std::uint32_t* out) const
    {
        std::uint32_t found = 0;
        for (std::uint32_t i = begin; i < end && found < most; ++i) {
            if (matches(i)) out[found++] = i;
        }
        return found;
    }

    template <class Act>
    void by_warp(std::uint32_t count, const Act& act) const
    {
        for (std::uint32_t i = 0; i < count; ++i) act(i);
    }

    // Runs work(group) in each of `threads` threads.
    static void run(std::uint32_t threads, const std::function<void(HostGroup)>& work)
    {
        if (threads == 1) return work(HostGroup(0, 1, nullptr));
        std::barrier barrier(threads);
        std::vector<std::jthread> all;
        for (std::uint32_t i = 0; i < threads; ++i) {
            all.emplace_back([&, i] { work(HostGroup(i, threads, &barrier)); });
        }
    }

private:
    std::uint32_t rank_;
    std::uint32_t size_;
    std::barrier<>* barrier_;
};

// The memory of a traversal (cuda/graph/queue.h).
class HostMemory
{
public:
    // gathered: entries that other groups may hand over.
    explicit HostMemory(const cuda::graph::TraversalShape& shape, std::uint32_t gathered = 0)
        : shape_(shape),
          entries_(2 * shape.length),
          kept_(cuda::graph::kept_room(shape.most_batch)),
          rows_(shape.most_batch + behind, untouched),
          parents_(shape.warps * shape.places()),
          again_(shape.again),
          first_(cuda::graph::no_entry),
          gathered_(gathered),
          counters_(cuda::graph::queue_counters, 12345)
    {
    }
    cuda::graph::Entry* entries(std::uint32_t side) const { return entries_.data() + side * shape_.length; }
    cuda::graph::Entry* kept() const { return kept_.data(); }
    std::uint32_t* counters() const { return counters_.data(); }
    std::uint32_t* rows() const { return rows_.data(); }
    std::uint32_t* parents(std::uint32_t warp) const { return parents_.data() + warp * shape_.places(); }
    std::uint32_t* again() const { return again_.data(); }
    cuda::graph::Entry* first() const { return &first_; }
    cuda::graph::Entry* gathered() const { return gathered_.data(); }
    cuda::graph::ClusterTask* task() const { return &task_; }

    // Whether the memory behind rows() is unchanged.
    bool is_intact() const
    {
        return std::all_of(rows_.end() - behind, rows_.end(), [](std::uint32_t word) { return word == untouched; });
    }

private:
    static constexpr std::uint32_t untouched = 0xa5a5a5a5;
    static constexpr std::uint32_t behind = 64;

    cuda::graph::TraversalShape shape_;
    mutable std::vector<cuda::graph::Entry> entries_;
    mutable std::vector<cuda::graph::Entry> kept_;
    mutable std::vector<std::uint32_t> rows_;
    mutable std::vector<std::uint32_t> parents_;
    mutable std::vector<std::uint32_t> again_;
    mutable cuda::graph::Entry first_;
    mutable std::vector<cuda::graph::Entry> gathered_;
    mutable cuda::graph::ClusterTask task_;
    mutable std::vector<std::uint32_t> counters_;
};

}  // namespace pgwarp::test
