// A search through the graph (SONG sections 3 to 6) by a group of threads: rows near the query are expanded, best
// first, until the best `ef` rows seen are all expanded. Three stages a turn: neighbours are located, their scores
// computed in bulk, queue and visited rows kept up. Free of CUDA: the group, the visited rows and the scores are given,
// so the same code runs on the CPU in tests.
//
// What a search finds depends on the query, the graph, its starts and `ef`, `length`, `steps`, `again` (and, where some
// of these starts get in after all, on `most_fresh`, by which they come in pieces): not on how many threads there are,
// nor on their order, nor, with VisitedHash, on what is forgotten.
//
// A Group has rank(), size(), sync(), and on shared words count (adds one), lower (minimum), compare_and_swap and
// set_bits, which return what was there. Its first leaders() threads lead(), with a barrier of their own,
// sync_leaders(): first_matches(begin, end, most, matches, out), called by them, writes, in order, the first `most`
// numbers in [begin, end) for which matches(i) holds and returns how many they are. sharers(items): how many
// neighbouring threads, 2 to this power, may work on each of so many items; add_up(value, sharers) is the sum over
// them, called by all threads; prefetch(address) says that what lies there will be read soon.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/queue.h"
#include "graph/visited.h"

namespace pgwarp::cuda::graph
{

// As in index/graph/graph.h.
inline constexpr std::uint32_t no_row_here = 0xffffffff;

// What takes the place of a division by a small number: quotient(a, inverse_of(b)) = a / b for a, b below 2^16, b > 1.
PGWARP_HOST_DEVICE constexpr std::uint32_t inverse_of(std::uint32_t divisor)
{
    return static_cast<std::uint32_t>((std::uint64_t{1} << 32) / divisor + 1);
}
PGWARP_HOST_DEVICE constexpr std::uint32_t quotient(std::uint32_t a, std::uint32_t inverse)
{
    return static_cast<std::uint32_t>((std::uint64_t{a} * inverse) >> 32);
}

struct TraversalShape {
    std::uint32_t ef = 0;      // rows that are to be expanded: a queue of the best so many
    std::uint32_t length = 0;  // of the queue, >= ef: more are of use to those who want to see what bounding it saves
    std::uint32_t steps = 1;   // rows expanded a turn (SONG: multi-step probing)
    std::uint32_t degree = 0;
    std::uint32_t most_fresh = 0;      // rows scored at a time, >= steps * degree; starts may come in larger batches
    std::uint32_t degree_inverse = 0;  // inverse_of(degree)
    // Of the starts the best so many are offered again in the end: those that no way has led to.
    std::uint32_t again = 0;
    bool selected = false;  // a row is remembered as visited only where it enters the queue
    bool deletes = false;   // and forgotten where it leaves it; implies selected
};

// Where a search begins: at the best `kept` of some rows, and at one from which all others can be reached.
struct TraversalStarts {
    const std::uint32_t* rows = nullptr;  // [count], in memory that all threads read; no_row_here is passed over
    std::uint32_t count = 0;
    std::uint32_t kept = 0;
    std::uint32_t first = no_row_here;
    bool repeats = false;   // a row may be there twice
    bool all_rows = false;  // no_row_here is not among them
};

struct TraversalCounts {
    std::uint32_t turns = 0;
    std::uint32_t expanded = 0;
    std::uint32_t scored = 0;
};

// scores(rows, count, out): out[i] = entry of rows[i], not expanded, for all threads of the group together; begins and
// ends without a barrier. All that is given has to outlive the traversal.
template <class Group, class Memory, class Visited, class Scores>
class Traversal
{
public:
    PGWARP_HOST_DEVICE Traversal(const Group& group, const TraversalShape& shape, const Memory& memory,
                                 const Visited& visited, const Scores& scores)
        : group_(group),
          shape_(shape),
          memory_(memory),
          queue_(group, memory, shape.length),
          visited_(visited),
          scores_(scores)
    {
        remembered_late_ = shape.selected || shape.deletes;
        finds_repeats_ = Visited::finds_repeats && !remembered_late_;
    }

    // Through neighbours [rows][degree]. Afterwards the queue holds the answer, for all threads to see.
    PGWARP_HOST_DEVICE TraversalCounts run(const TraversalStarts& starts, const std::uint32_t* neighbours)
    {
        TraversalCounts counts;
        neighbours_ = neighbours;
        queue_.clear();
        visited_.clear();
        clear_fresh();
        group_.sync();
        begin_at(starts, counts);
        std::uint32_t first = 0;  // entries before it are expanded
        std::uint32_t offered = 0;
        do {
            expand(first, counts);
            first = offer_more(starts, offered, counts);
        } while (first < shape_.ef);
        return counts;
    }

private:
    PGWARP_HOST_DEVICE void expand(std::uint32_t first, TraversalCounts& counts)
    {
        while (first < shape_.ef) {
            const std::uint32_t parents = choose_parents(first);
            if (parents == 0) return;
            ++counts.turns;
            counts.expanded += parents;
            for (std::uint32_t i = group_.rank(); i < parents * shape_.degree; i += group_.size()) {
                const std::uint32_t own = quotient(i, shape_.degree_inverse);
                const std::size_t parent = memory_.parents()[own];
                locate(neighbours_[parent * shape_.degree + (i - own * shape_.degree)]);
            }
            group_.sync();
            first = smaller(first, admit(counts, !finds_repeats_ && parents > 1));
        }
    }

    // Of the best starts, the next few that no way has led to: the least place that one of them gets.
    PGWARP_HOST_DEVICE std::uint32_t offer_more(const TraversalStarts& starts, std::uint32_t& offered,
                                                TraversalCounts& counts)
    {
        const std::uint32_t before = counts.scored;
        while (offered < shape_.again && counts.scored == before) {
            const std::uint32_t end = offered + smaller(shape_.most_fresh, shape_.again - offered);
            for (std::uint32_t i = offered + group_.rank(); i < end; i += group_.size()) locate(memory_.again()[i]);
            group_.sync();
            offered = end;
            const std::uint32_t lowest = admit(counts, !finds_repeats_ && starts.repeats);
            if (counts.scored != before) return lowest;
        }
        return shape_.length;
    }

    // Batches grow: the first set a bound that most of the others do not pass, and sorting many takes long. What does
    // not stay is not remembered.
    PGWARP_HOST_DEVICE void begin_at(const TraversalStarts& starts, TraversalCounts& counts)
    {
        const std::uint32_t kept = smaller(starts.kept, shape_.length);
        const std::uint32_t noted = larger(kept, smaller(shape_.again, shape_.length));
        Queue<Group, Memory> few(group_, memory_, noted);
        std::uint32_t batch = 4 * noted;
        const auto nothing = [](std::uint32_t) {};
        for (std::uint32_t begin = 0; begin < starts.count && noted > 0;) {
            // Not a last one of few.
            if (starts.count - begin < 2 * batch) batch = starts.count - begin;
            batch = smaller(batch, shape_.most_fresh);
            const std::uint32_t end = begin + smaller(batch, starts.count - begin);
            if (starts.all_rows) {
                take_in(few, starts.rows + begin, end - begin, counts, starts.repeats, nothing, nothing);
            } else {
                for (std::uint32_t i = begin + group_.rank(); i < end; i += group_.size()) {
                    if (starts.rows[i] != no_row_here) add_located(starts.rows[i]);
                }
                group_.sync();
                offer(few, counts, starts.repeats, nothing, nothing);
            }
            begin = end;
            batch *= 4;
        }
        group_.sync();
        note_starts(kept, noted);
        queue_.reset_counters();
        if (group_.rank() == 0 && starts.first != no_row_here) add_located(starts.first);
        group_.sync();
        offer(queue_, counts, false, nothing, nothing);
        group_.sync();
        remember_queue();
    }

    // The best starts are put down, to be offered again in the end; those kept stay in the queue.
    PGWARP_HOST_DEVICE void note_starts(std::uint32_t kept, std::uint32_t noted)
    {
        Entry* entries = memory_.entries();
        for (std::uint32_t i = group_.rank(); i < shape_.again; i += group_.size()) {
            memory_.again()[i] = i < noted && entries[i] != no_entry ? row_of(entries[i]) : no_row_here;
        }
        group_.sync();
        for (std::uint32_t i = kept + group_.rank(); i < noted; i += group_.size()) entries[i] = no_entry;
        group_.sync();
    }

    PGWARP_HOST_DEVICE static std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
    PGWARP_HOST_DEVICE static std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a < b ? b : a; }

    PGWARP_HOST_DEVICE void clear_fresh()
    {
        if (group_.rank() != 0) return;
        memory_.counters()[fresh_counter] = 0;
        memory_.counters()[lost_counter] = 0;
    }

    // The first rows that are not expanded are marked so; their numbers go to `parents`. `first` moves to where the
    // next search for them begins.
    PGWARP_HOST_DEVICE std::uint32_t choose_parents(std::uint32_t& first)
    {
        std::uint32_t* counters = memory_.counters();
        if (group_.leads()) {
            Entry* entries = memory_.entries();
            const auto waits = [&](std::uint32_t i) { return !is_expanded(entries[i]); };
            const std::uint32_t found = group_.first_matches(first, shape_.ef, shape_.steps, waits, memory_.parents());
            group_.sync_leaders();
            for (std::uint32_t i = group_.rank(); i < found; i += group_.leaders()) {
                const std::uint32_t place = memory_.parents()[i];
                if (i + 1 == found) counters[next_counter] = place + 1;
                memory_.parents()[i] = row_of(entries[place]);
                entries[place] |= 1;
            }
            if (group_.rank() == 0) counters[parent_counter] = found;
        }
        group_.sync();
        first = counters[next_counter];
        return counters[parent_counter];
    }

    PGWARP_HOST_DEVICE void add_located(std::uint32_t row)
    {
        memory_.rows()[group_.count(&memory_.counters()[fresh_counter])] = row;
    }

    // A row that is not known goes to those to be scored.
    PGWARP_HOST_DEVICE void locate(std::uint32_t row)
    {
        if (row == no_row_here) return;
        if (remembered_late_) {
            if (visited_.contains(row)) return;
        } else {
            bool lost = false;
            if (!visited_.insert(row, lost)) return;
            if (lost) group_.store(&memory_.counters()[lost_counter], 1);
        }
        add_located(row);
    }

    // Scores what was located and takes it into a queue.
    template <class Entered, class Left>
    PGWARP_HOST_DEVICE Taken offer(Queue<Group, Memory>& queue, TraversalCounts& counts, bool repeats,
                                   const Entered& entered, const Left& left)
    {
        const std::uint32_t fresh = memory_.counters()[fresh_counter];
        repeats = repeats || memory_.counters()[lost_counter] != 0;
        if (fresh == 0) {
            group_.sync();  // before the next is counted
            return {0, shape_.length};
        }
        return take_in(queue, memory_.rows(), fresh, counts, repeats, entered, left);
    }

    // The same of rows that are somewhere else.
    template <class Entered, class Left>
    PGWARP_HOST_DEVICE Taken take_in(Queue<Group, Memory>& queue, const std::uint32_t* rows, std::uint32_t count,
                                     TraversalCounts& counts, bool repeats, const Entered& entered, const Left& left)
    {
        scores_(rows, count, memory_.fresh());
        group_.sync();
        clear_fresh();
        counts.scored += count;
        const auto comes = [&](std::uint32_t row, std::uint32_t place) {
            // It will be expanded soon.
            if (place < 2 * shape_.steps) group_.prefetch(neighbours_ + static_cast<std::size_t>(row) * shape_.degree);
        };
        return queue.take_in(count, repeats, comes, entered, left);
    }

    PGWARP_HOST_DEVICE std::uint32_t admit(TraversalCounts& counts, bool repeats)
    {
        const std::uint32_t before = counts.scored;
        const Taken taken = offer(
            queue_, counts, repeats,
            [&](std::uint32_t row) {
                if (remembered_late_) visited_.insert_new(row);
            },
            [&](std::uint32_t row) {
                if (shape_.deletes) visited_.erase(row);
            });
        remembered_ += remembered_late_ ? taken.entries : counts.scored - before;
        if (!shape_.deletes && remembered_ + most_located() > visited_.capacity()) forget();
        return taken.lowest;
    }

    // The structure is full: only what is in the queue stays. Where even that is too much, it stays as it is.
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
            const Entry entry = memory_.entries()[i];
            bool lost = false;
            if (entry != no_entry) visited_.insert(row_of(entry), lost);
        }
        remembered_ = shape_.length;
        group_.sync();
    }

    PGWARP_HOST_DEVICE std::uint32_t most_located() const { return shape_.steps * shape_.degree; }

    const Group& group_;
    const TraversalShape& shape_;
    const Memory& memory_;
    Queue<Group, Memory> queue_;
    Visited visited_;
    const std::uint32_t* neighbours_ = nullptr;
    const Scores& scores_;
    bool remembered_late_ = false;
    bool finds_repeats_ = false;  // of two threads that meet a row at a time, one is told that it is known
    std::uint32_t remembered_ = 0;
};

}  // namespace pgwarp::cuda::graph
