// A search through the graph (SONG sections 3 to 6) by a group of threads: rows near the query are expanded, best
// first, until the best `ef` rows seen are all expanded. A turn has three stages: neighbours are located, their scores
// are computed in bulk, and queue and visited rows are updated. Free of CUDA: group, visited rows and scores are
// parameters, so that tests run the same code on the CPU.
//
// The answer depends on the query, the graph, the starts and `ef`, `length`, `steps`, `again`. It does not depend on
// the number of threads or their order, nor, with VisitedHash, on rows that are forgotten.
//
// A Group has rank(), size(), sync(), `exclusive` (it has a multiprocessor to itself), and compare_and_swap and
// set_bits on shared words, which return the old value. A group consists of warps, whose threads run in step: warp() is
// the number of the calling thread's warp, first_of_warp() the rank of its first thread.
//   count(word, asks)   called by a whole warp: adds one for each thread with `asks` and returns the value before the
//                       thread's own addition
//   sharer_bits(count)  2^sharer_bits(count) neighbouring threads share each of `count` pieces of work;
//                       sum(sharer_bits, value) and least(sharer_bits, value) give all of them the sum and the least
//   first_matches(begin, end, most, matches, out)  called by a whole warp: writes, in order, the first `most` numbers
//                       in [begin, end) for which matches(i) holds, for the warp to read, and returns their number
//   by_warp(count, act) called by a whole warp: calls act(i) for each number below count, by one of its threads
//   prefetch(begin, bytes)  starts to load memory into a cache
#pragma once

#include <cstdint>

#include "graph/block_cluster.h"
#include "graph/candidate_batch.h"
#include "graph/queue.h"
#include "graph/seed_stage.h"
#include "graph/traversal_shape.h"
#include "graph/visited.h"

namespace pgwarp::cuda::graph
{

// scores(rows, count, take), called by all threads of the group, calls take(i, entry of rows[i], not expanded) by one
// thread each; take is called by whole warps, with (nowhere, no_entry) by threads without an entry. It has no barrier
// at the start or the end. Scores may have more functions: seeds(rows, begin, count, take), which scores starts[begin,
// ...) that are seeds; prefetch(row), which prefetches the memory that scoring the row reads; and vector_pieces() and
// prefetch_vector(row, piece) for the memory that ranking reads. The arguments of the constructor must outlive the
// traversal. wide: a turn may have more rows than are expanded together, and the groups of a block cluster may share
// its scores; without `wide` the code needs fewer registers.
template <class Group, class Memory, class Visited, class Scores, bool wide = true>
class Traversal
{
public:
    // neighbours: [rows][degree].
    PGWARP_HOST_DEVICE Traversal(const Group& group, const TraversalShape& shape, const Memory& memory,
                                 const Visited& visited, const Scores& scores, const std::uint32_t* neighbours)
        : group_(group),
          shape_(shape),
          memory_(memory),
          candidate_batch_(group, shape, memory, neighbours),
          queue_(group, memory, shape.length),
          visited_(visited),
          scores_(scores)
    {
        remembered_late_ = shape.selected || shape.deletes;
        finds_repeats_ = Visited::finds_repeats && !remembered_late_;
    }

    // The caller clears the visited rows first. Afterwards found() and counts() of the first group are the answer,
    // visible to all its threads. Where the block cluster shares scores, the first group has called arrive() once more
    // than wait(): the caller waits before its memory is freed.
    template <class BlockCluster = NoBlockCluster>
    PGWARP_HOST_DEVICE void run(const TraversalStarts& starts, const BlockCluster& block_cluster = {})
    {
        candidate_batch_.clear();
        if (SeedStage(group_, shape_, memory_, scores_, candidate_batch_).begin(queue_, starts, block_cluster)) {
            lead(starts, block_cluster);
            if constexpr (BlockCluster::shares) {
                if (shares_scores(block_cluster)) dismiss(block_cluster);
            }
        } else if constexpr (BlockCluster::shares) {
            if (shares_scores(block_cluster)) score_parts(block_cluster);
        }
    }

    // The queue's `length` entries.
    PGWARP_HOST_DEVICE const Entry* found() const { return queue_.entries(); }
    PGWARP_HOST_DEVICE TraversalCounts counts() const { return candidate_batch_.counts(); }

private:
    // The first group's part: from its start until all rows are expanded.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE void lead(const TraversalStarts& starts, const BlockCluster& block_cluster)
    {
        std::uint32_t first = 0;    // entries before it are expanded
        std::uint32_t offered = 0;  // starts that were offered again
        bool offering = false;      // the next batch consists of such starts
        const bool has_first = BlockCluster::shares && starts.all_rows;
        for (bool begun = false;; begun = true) {
            if (begun || !has_first) {
                // The first row may be among the starts.
                const std::uint32_t lowest = admit(!begun || !finds_repeats_, block_cluster);
                // Later starts are farther still.
                if (offering && lowest >= shape_.ef) return;
                first = smaller(first, lowest);
            }
            if (!begun) remember_queue();
            offering = !locate_neighbours(first, block_cluster);
            if (!offering) continue;
            if (offered == 0) prefetch_vectors();
            if (!locate_starts(offered)) return;
        }
    }

    // Locates the links of the next rows to expand and moves `first` behind these rows. False where all rows are
    // expanded.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE bool locate_neighbours(std::uint32_t& first, const BlockCluster& block_cluster)
    {
        if constexpr (wide) {
            return locate_wide(first, block_cluster);
        } else {
            return locate_turn(first);
        }
    }

    // Locates the links of some rows of a turn, or, with the block cluster, of all.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE bool locate_wide(std::uint32_t& first, const BlockCluster& block_cluster)
    {
        const std::uint32_t begin = first;
        if (next_parent_ == parents_ && !choose_wide(first)) return false;
        const std::uint32_t* rows = memory_.parents(group_.warp()) + next_parent_;
        if (shares_scores(block_cluster)) {
            if constexpr (BlockCluster::shares) locate_together(rows, block_cluster);
        } else {
            const std::uint32_t some = smaller(parents_ - next_parent_, shape_.together());
            const std::uint32_t ahead = smaller(waiting_ - next_parent_, some + shape_.ahead);
            locate(some * shape_.degree, ahead * shape_.degree,
                   [&](std::uint32_t i) { return link(i, [rows](std::uint32_t parent) { return rows[parent]; }); });
            next_parent_ += some;
        }
        for (std::uint32_t i = begin + group_.rank(); i < first; i += group_.size()) queue_.entries()[i] |= 1;
        return true;
    }

    // Locates the links of all rows of a turn.
    PGWARP_HOST_DEVICE bool locate_turn(std::uint32_t& first)
    {
        Entry* entries = queue_.entries();
        const std::uint32_t waiting = find_waiting(first);
        if (waiting == 0) return false;
        const std::uint32_t* places = memory_.parents(group_.warp());
        const std::uint32_t parents = begin_turn(smaller(waiting, most_parents()), first);
        const auto row = [&](std::uint32_t parent) { return row_of(entries[places[parent]]); };
        locate(parents * shape_.degree, waiting * shape_.degree, [&](std::uint32_t i) { return link(i, row); });
        for (std::uint32_t i = group_.rank(); i < parents; i += group_.size()) entries[places[i]] |= 1;
        return true;
    }

    // Chooses the rows of a turn, some of which may be expanded after others have entered the queue. False where there
    // are none.
    PGWARP_HOST_DEVICE bool choose_wide(std::uint32_t& first)
    {
        waiting_ = find_waiting(first);
        if (waiting_ == 0) return false;
        parents_ = begin_turn(smaller(waiting_, most_parents()), first);
        next_parent_ = 0;
        std::uint32_t* parents = memory_.parents(group_.warp());
        group_.by_warp(waiting_, [&](std::uint32_t i) { parents[i] = row_of(queue_.entries()[parents[i]]); });
        return true;
    }

    // Finds the places of the nearest rows that are not expanded and returns their number. Each warp does so for
    // itself, so that no warp waits for another.
    PGWARP_HOST_DEVICE std::uint32_t find_waiting(std::uint32_t first) const
    {
        const Entry* entries = queue_.entries();
        const auto waits = [&](std::uint32_t i) { return !is_expanded(entries[i]); };
        return group_.first_matches(first, shape_.ef, shape_.places(), waits, memory_.parents(group_.warp()));
    }
    PGWARP_HOST_DEVICE std::uint32_t most_parents() const { return queue_.is_full() ? shape_.steps : shape_.early(); }
    PGWARP_HOST_DEVICE std::uint32_t begin_turn(std::uint32_t parents, std::uint32_t& first) const
    {
        first = memory_.parents(group_.warp())[parents - 1] + 1;
        candidate_batch_.count(turns_counter, 1);
        candidate_batch_.count(expanded_counter, parents);
        return parents;
    }

    // Link i of the links of all rows that are expanded.
    template <class RowOf>
    PGWARP_HOST_DEVICE std::uint32_t link(std::uint32_t i, const RowOf& row_of_parent) const
    {
        const std::uint32_t parent = quotient(i, shape_.degree_inverse);
        const std::uint32_t row = row_of_parent(parent);
        return candidate_batch_.neighbours_of(row)[i - parent * shape_.degree];
    }

    template <class BlockCluster>
    PGWARP_HOST_DEVICE static bool shares_scores(const BlockCluster& block_cluster)
    {
        return wide && block_cluster.shares_scores();
    }

    // Locates the links of all rows of a turn; the groups of the block cluster score a part each.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE void locate_together(const std::uint32_t* parents, const BlockCluster& block_cluster)
    {
        ClusterTask& task = *memory_.task();
        if (group_.warp() == 0) group_.by_warp(parents_, [&](std::uint32_t i) { task.rows[i] = parents[i]; });
        tell(parents_, block_cluster);
        const Part part = part_of(block_cluster, parents_ * shape_.degree);
        bring_links(part, parents);
        candidate_batch_.set_located(part.size());
        block_cluster.wait();
        group_.sync();
        next_parent_ = parents_;
        together_ = true;
    }
    template <class BlockCluster>
    PGWARP_HOST_DEVICE void tell(std::uint32_t parents, const BlockCluster& block_cluster)
    {
        if (group_.rank() == 0) memory_.task()->parents = parents;
        block_cluster.arrive();
    }
    template <class BlockCluster>
    PGWARP_HOST_DEVICE void dismiss(const BlockCluster& block_cluster)
    {
        tell(0, block_cluster);
        block_cluster.wait();
        block_cluster.arrive();
    }

    // Writes a part of the links of some rows to rows(), to be scored. The caller adds a barrier.
    PGWARP_HOST_DEVICE void bring_links(const Part& part, const std::uint32_t* parents)
    {
        for (std::uint32_t i = group_.rank(); i < part.size(); i += group_.size()) {
            const std::uint32_t row = link(part.begin + i, [parents](std::uint32_t parent) { return parents[parent]; });
            // The first row to expand is known, so it stands for a missing link.
            memory_.rows()[i] = row != no_row_here ? row : parents[0];
        }
    }

    // The part of the other groups: scores of their part of each turn.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE void score_parts(const BlockCluster& block_cluster)
    {
        const auto& leader = block_cluster.leader();
        for (;;) {
            meet(block_cluster);
            const ClusterTask& task = *leader.task();
            const std::uint32_t parents = task.parents;
            if (parents == 0) return meet(block_cluster);
            const Part part = part_of(block_cluster, parents * shape_.degree);
            bring_links(part, task.rows);
            group_.sync();
            Entry* to = leader.gathered() + part.begin;
            scores_(memory_.rows(), part.size(), [to](std::uint32_t i, Entry entry) {
                if (i != nowhere) to[i] = entry;
            });
            meet(block_cluster);
        }
    }

    // Locates the next few of the best starts that were not visited. False where there are none left.
    PGWARP_HOST_DEVICE bool locate_starts(std::uint32_t& offered)
    {
        while (offered < shape_.again) {
            const std::uint32_t begin = offered;
            offered += smaller(shape_.early() * shape_.degree, shape_.again - begin);
            locate(offered - begin, offered - begin, [&](std::uint32_t i) { return memory_.again()[begin + i]; });
            if (candidate_batch_.located() > 0) return true;
            // All threads read located() before the next batch is counted.
            group_.sync();
        }
        return false;
    }

    PGWARP_HOST_DEVICE std::uint32_t most_located() const { return shape_.together() * shape_.degree; }

    // Adds the unvisited ones of row_of_number(0 .. count - 1) to the batch. Prefetches those from `count` to `ahead`,
    // which will be located later.
    template <class RowOf>
    PGWARP_HOST_DEVICE void locate(std::uint32_t count, std::uint32_t ahead, const RowOf& row_of_number)
    {
        const auto is_new = [this](std::uint32_t row) {
            return remembered_late_ ? !visited_.contains(row) : remember(row);
        };
        if constexpr (requires { scores_.prefetch(0U); }) {
            for (std::uint32_t i = count + group_.size() - 1 - group_.rank(); i < ahead; i += group_.size()) {
                const std::uint32_t row = row_of_number(i);
                if (row != no_row_here) scores_.prefetch(row);
            }
        }
        candidate_batch_.add_rows_if(count, row_of_number, is_new);
    }

    // Returns whether the row was not yet visited.
    PGWARP_HOST_DEVICE bool remember(std::uint32_t row)
    {
        bool lost = false;
        const bool inserted = visited_.insert(row, lost);
        if (lost) candidate_batch_.set_lost();
        return inserted;
    }

    // Prefetches the vectors of rows that are likely to be ranked.
    PGWARP_HOST_DEVICE void prefetch_vectors() const
    {
        if constexpr (requires { scores_.vector_pieces(); }) {
            const std::uint32_t pieces = scores_.vector_pieces();
            for (std::uint32_t i = group_.rank(); i < shape_.ranked * pieces; i += group_.size()) {
                const Entry entry = queue_.entries()[i / pieces];
                if (entry != no_entry) scores_.prefetch_vector(row_of(entry), i % pieces);
            }
        }
    }

    // Scores the located rows and merges them into the queue. Returns the least place of one of them.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE std::uint32_t admit(bool repeats, const BlockCluster& block_cluster)
    {
        std::uint32_t located = candidate_batch_.located();
        bool lost = candidate_batch_.lost();
        const bool together = wide && BlockCluster::shares && together_;
        scores_(memory_.rows(), located, [&](std::uint32_t i, Entry entry) {
            if (!together) {
                queue_.offer(entry);
            } else if (i != nowhere) {
                memory_.gathered()[i] = entry;
            }
        });
        if constexpr (BlockCluster::shares) {
            if (together) {
                located = parents_ * shape_.degree;
                lost = offer_together(located, block_cluster);
            }
        }
        const auto entered = [&](std::uint32_t row) {
            if (remembered_late_) visited_.insert_new(row);
        };
        const auto left = [&](std::uint32_t row) {
            if (shape_.deletes) visited_.erase(row);
        };
        const Taken taken = candidate_batch_.take_scored(queue_, located, repeats || lost, entered, left);
        remembered_ += remembered_late_ || together ? taken.entries : located;
        if (!shape_.deletes && remembered_ + most_located() > visited_.capacity()) forget();
        return taken.lowest;
    }

    // Offers the entries of the block cluster to the queue if they were not visited. Returns whether rows may come
    // again.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE bool offer_together(std::uint32_t count, const BlockCluster& block_cluster)
    {
        meet(block_cluster);
        candidate_batch_.take_gathered(count, [this](Entry entry) {
            queue_.offer(lies_before(entry, queue_.end()) && remember(row_of(entry)) ? entry : no_entry);
        });
        group_.sync();
        together_ = false;
        return candidate_batch_.lost();
    }

    // Called when the structure is full: forgets all rows but those in the queue. Where even these do not fit, nothing
    // is forgotten.
    PGWARP_HOST_DEVICE void forget()
    {
        remembered_ = 0;
        if (shape_.length + most_located() > visited_.capacity()) return;
        group_.sync();
        visited_.clear();
        group_.sync();
        remember_queue();
    }

    PGWARP_HOST_DEVICE void remember_queue()
    {
        for (std::uint32_t i = group_.rank(); i < shape_.length; i += group_.size()) {
            const Entry entry = queue_.entries()[i];
            bool lost = false;
            if (entry != no_entry) visited_.insert(row_of(entry), lost);
        }
        remembered_ = shape_.length;
        group_.sync();
    }

    const Group& group_;
    const TraversalShape& shape_;
    const Memory& memory_;
    CandidateBatch<Group, Memory> candidate_batch_;
    Queue<Group, Memory> queue_;
    Visited visited_;
    const Scores& scores_;
    bool remembered_late_ = false;
    bool finds_repeats_ = false;  // insert() tells one of two threads with the same row that it is known
    std::uint32_t remembered_ = 0;
    std::uint32_t parents_ = 0;      // rows of this turn
    std::uint32_t next_parent_ = 0;  // the first of them that is not expanded
    std::uint32_t waiting_ = 0;      // rows of this turn and of the next one
    bool together_ = false;          // the located rows are this group's part of the block cluster's
};

}  // namespace pgwarp::cuda::graph
