// The start of a search, at the best of some rows, which a block cluster may share. Free of CUDA; Group, Memory, Scores
// and BlockCluster as in traversal.h, queue.h and block_cluster.h.
#pragma once

#include <cstdint>

#include "graph/block_cluster.h"
#include "graph/candidate_batch.h"
#include "graph/queue.h"
#include "graph/traversal_shape.h"

namespace pgwarp::cuda::graph
{

// The arguments of the constructor must outlive the object.
template <class Group, class Memory, class Scores>
class SeedStage
{
public:
    PGWARP_HOST_DEVICE SeedStage(const Group& group, const TraversalShape& shape, const Memory& memory,
                                 const Scores& scores, const CandidateBatch<Group, Memory>& candidate_batch)
        : group_(group), shape_(shape), memory_(memory), scores_(scores), candidate_batch_(candidate_batch)
    {
    }

    // Fills the queue of the first group with the best starts; the first row is in the queue or added to the batch.
    // Returns false in other groups. The groups share the starts where all of these are rows.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE bool begin(Queue<Group, Memory>& queue, const TraversalStarts& starts,
                                  const BlockCluster& block_cluster) const
    {
        const std::uint32_t kept = smaller(starts.kept, shape_.length);
        const std::uint32_t noted = noted_starts(shape_, starts.kept);
        Queue<Group, Memory> few(group_, memory_, noted);
        few.clear();
        group_.sync();
        Part part{0, starts.count};
        bool shared = false;
        if constexpr (BlockCluster::shares) {
            shared = starts.all_rows && block_cluster.size() > 1;
            if (!shared && block_cluster.own() > 0) return false;
            if (shared) {
                part = part_of(block_cluster, starts.count);
                block_cluster.begin();
            }
        }
        look_at<BlockCluster::shares>(few, starts, part, noted);
        if constexpr (BlockCluster::shares) {
            if (shared && !gather(few, noted, block_cluster)) return false;
        }
        // The best starts are kept to be offered again at the end; `kept` of them stay in the queue.
        const Entry* entries = few.entries();
        for (std::uint32_t i = group_.rank(); i < shape_.again; i += group_.size()) {
            memory_.again()[i] = i < noted && entries[i] != no_entry ? row_of(entries[i]) : no_row_here;
        }
        group_.sync();
        queue.continue_with(few, kept);
        if (BlockCluster::shares && starts.all_rows) {
            add_first(queue, kept);
            group_.sync();
        } else {
            candidate_batch_.add_rows(1, [&](std::uint32_t) { return starts.first; });
        }
        return true;
    }

private:
    // Scores the starts of `part` and leaves the best in `few`. Rows that do not stay are not remembered as visited.
    // notes_first: also stores the entry of the first row, where starts.all_rows.
    template <bool notes_first>
    PGWARP_HOST_DEVICE void look_at(Queue<Group, Memory>& few, const TraversalStarts& starts, const Part& part,
                                    std::uint32_t noted) const
    {
        // Where sorting many entries takes long, batches grow: the first batch sets a bound that most later entries do
        // not pass.
        std::uint32_t batch = few.trims() ? shape_.most_batch : 4 * noted;
        for (std::uint32_t begin = part.begin; begin < part.end && noted > 0;) {
            // Joins a short last batch to the one before.
            if (part.end - begin < 2 * batch) batch = part.end - begin;
            batch = smaller(batch, shape_.most_batch);
            const std::uint32_t end = begin + smaller(batch, part.end - begin);
            score<notes_first>(few, starts, begin, end - begin);
            begin = end;
            batch *= 4;
        }
    }

    template <bool notes_first>
    PGWARP_HOST_DEVICE void score(Queue<Group, Memory>& few, const TraversalStarts& starts, std::uint32_t begin,
                                  std::uint32_t count) const
    {
        const std::uint32_t* rows = starts.rows + begin;
        if (!starts.all_rows) {
            candidate_batch_.add_rows(count, [rows](std::uint32_t i) { return rows[i]; });
            const std::uint32_t located = candidate_batch_.located();
            scores_(memory_.rows(), located, [&](std::uint32_t, Entry entry) { few.offer(entry); });
            candidate_batch_.take_scored(few, located, starts.repeats);
            return;
        }
        const auto offer = [&](std::uint32_t i, Entry entry) {
            if (notes_first && begin == 0 && i == 0) *memory_.first() = entry;
            few.offer(entry);
        };
        if constexpr (requires { scores_.seeds(rows, begin, count, offer); }) {
            scores_.seeds(rows, begin, count, offer);
        } else {
            scores_(rows, count, offer);
        }
        candidate_batch_.take_scored(few, count, starts.repeats);
    }

    // The first group takes in the best entries of each group's part.
    template <class BlockCluster>
    PGWARP_HOST_DEVICE bool gather(Queue<Group, Memory>& few, std::uint32_t noted,
                                   const BlockCluster& block_cluster) const
    {
        // The memory of a group that has not started cannot be written.
        block_cluster.wait();
        if (block_cluster.own() > 0) {
            Entry* to = block_cluster.leader().gathered() + (block_cluster.own() - 1) * noted;
            for (std::uint32_t i = group_.rank(); i < noted; i += group_.size()) to[i] = few.entries()[i];
        }
        meet(block_cluster);
        if (block_cluster.own() > 0) return false;
        candidate_batch_.take_gathered((block_cluster.size() - 1) * noted, [&](Entry entry) { few.offer(entry); });
        candidate_batch_.take_scored(few, 0, false);
        return true;
    }

    // Adds the first row, which was scored with the others: it is among the kept entries or after all of them. One
    // thread writes.
    PGWARP_HOST_DEVICE void add_first(const Queue<Group, Memory>& queue, std::uint32_t kept) const
    {
        if (group_.rank() != 0 || kept == shape_.length) return;
        Entry* entries = queue.entries();
        const Entry first = *memory_.first();
        if (first > entries[kept - 1]) entries[kept] = first;
    }

    const Group& group_;
    const TraversalShape& shape_;
    const Memory& memory_;
    const Scores& scores_;
    const CandidateBatch<Group, Memory>& candidate_batch_;
};

}  // namespace pgwarp::cuda::graph
