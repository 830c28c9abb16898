// A search through the graph (SONG sections 3 to 6) by a group of threads: rows near the query are expanded, best
// first, until the best `ef` rows seen are all expanded. Three stages a turn: neighbours are located, their scores
// computed in bulk, queue and visited rows kept up. Free of CUDA: the group, the visited rows and the scores are given,
// so the same code runs on the CPU in tests.
//
// What a search finds depends on the query, the graph, its starts and `ef`, `length`, `steps`, `again`: not on how many
// threads there are, nor on their order, nor, with VisitedHash, on what is forgotten.
//
// A Group has rank(), size(), sync(), and on shared words compare_and_swap and set_bits, which return what was there.
// It consists of warps, threads that go in step: warp() is the number of the caller's own. count(word, asks), called by
// a whole warp, adds one for each thread that asks and returns what was there before its own. Some neighbouring
// threads, 2^sharer_bits(count), share each of so many pieces of work, and all get the sum(sharer_bits, value) over
// them. first_matches(begin, end, most, matches, out), called by a whole warp, writes, in order, the first `most`
// numbers in [begin, end) for which matches(i) holds, for the warp to read, and returns how many they are.
// prefetch(address) says that what lies there will be read soon.
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
    std::uint32_t warps = 1;           // of the group
    // Of the starts the best so many are offered again in the end: those that no way has led to.
    std::uint32_t again = 0;
    bool selected = false;  // a row is remembered as visited only where it enters the queue
    bool deletes = false;   // and forgotten where it leaves it; implies selected
    // What is read ahead, where reading takes longer than computing. Nothing that is found depends on it.
    std::uint32_t ahead = 0;        // rows after those that are expanded whose neighbours are brought near
    std::uint32_t near_places = 0;  // links of rows that come before this place in the queue, and
    std::uint32_t ranked = 0;       // vectors of those that come before this one

    PGWARP_HOST_DEVICE constexpr std::uint32_t places() const { return steps + ahead; }
};

// Where a search begins: at the best `kept` of some rows, and at one from which all others can be reached.
struct TraversalStarts {
    const std::uint32_t* rows = nullptr;  // [count], in memory that all threads read; no_row_here is passed over
    std::uint32_t count = 0;
    std::uint32_t kept = 0;
    std::uint32_t first = no_row_here;
    bool repeats = false;   // a row may be there twice
    bool all_rows = false;  // no_row_here is not among them, and `first` is the first of them
};

// Of starts that several groups look at, each at a part, with memory of its own.
struct StartsPart {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

// The way of a group that looks at all starts itself.
struct NoOthers {
    static constexpr bool shares = false;
};

// So many of the best starts are put down. All of them lie in memory of `shape.length` entries.
PGWARP_HOST_DEVICE constexpr std::uint32_t noted_starts(const TraversalShape& shape, std::uint32_t kept)
{
    const std::uint32_t most = kept < shape.again ? shape.again : kept;
    return most < shape.length ? most : shape.length;
}

struct TraversalCounts {
    std::uint32_t turns = 0;
    std::uint32_t expanded = 0;
    std::uint32_t scored = 0;
};

// scores(rows, count, take): take(i, entry of rows[i], not expanded), by one thread each, for all threads of the group
// together; take is called by whole warps, with (nowhere, no_entry) by threads that have none. No barrier comes first
// or last. Scores may have more: seeds(rows, begin, count, take), the same of starts[begin, ...) that are all seeds;
// prefetch(row) and prefetch_vector(row) for what scoring and ranking it will read. All that is given has to outlive
// the traversal.
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

    // Through neighbours [rows][degree]; the visited rows have been cleared. Afterwards found() is the answer, for all
    // threads to see.
    //
    // Several groups may look at starts that are all rows: where Others shares and is not alone(), part(count) is what
    // the calling group looks at, the first group at the first row, and meet(entries, count, offer) is called with the
    // best of that: in the first group it offers those of the others, by whole warps, and returns true; the others are
    // done when it returns.
    template <class Others = NoOthers>
    PGWARP_HOST_DEVICE TraversalCounts run(const TraversalStarts& starts, const std::uint32_t* neighbours,
                                           const Others& others = {})
    {
        TraversalCounts counts;
        neighbours_ = neighbours;
        clear_fresh();
        if (!begin_at(starts, counts, others)) return counts;
        std::uint32_t first = 0;    // entries before it are expanded
        std::uint32_t offered = 0;  // starts that were offered again
        bool offering = false;      // what is admitted next are some of them
        const bool has_first = Others::shares && starts.all_rows;
        for (bool begun = false;; begun = true) {
            if (begun || !has_first) {
                // The first row may be among the starts.
                const std::uint32_t lowest = admit(counts, !begun || !finds_repeats_);
                // Those that follow are farther still.
                if (offering && lowest >= shape_.ef) return counts;
                first = smaller(first, lowest);
            }
            if (!begun) remember_queue();
            offering = !locate_neighbours(first, counts);
            if (offering && !locate_starts(offered)) return counts;
        }
    }

    // The queue's `length` entries.
    PGWARP_HOST_DEVICE const Entry* found() const { return queue_.entries(); }

private:
    // The neighbours of the nearest rows that are not expanded: false where all are. `first` moves behind them.
    PGWARP_HOST_DEVICE bool locate_neighbours(std::uint32_t& first, TraversalCounts& counts)
    {
        Entry* entries = queue_.entries();
        std::uint32_t* places = memory_.parents(group_.warp());
        // Each warp chooses for itself, so that none has to wait for another.
        const auto waits = [&](std::uint32_t i) { return !is_expanded(entries[i]); };
        const std::uint32_t waiting = group_.first_matches(first, shape_.ef, shape_.places(), waits, places);
        if (waiting == 0) return false;
        const std::uint32_t parents = smaller(waiting, shape_.steps);
        first = places[parents - 1] + 1;
        ++counts.turns;
        counts.expanded += parents;
        const auto neighbour = [&](std::uint32_t i) {
            const std::uint32_t own = quotient(i, shape_.degree_inverse);
            const std::size_t parent = row_of(entries[places[own]]);
            return neighbours_[parent * shape_.degree + (i - own * shape_.degree)];
        };
        locate(parents * shape_.degree, waiting * shape_.degree, neighbour);
        for (std::uint32_t i = group_.rank(); i < parents; i += group_.size()) entries[places[i]] |= 1;
        return true;
    }

    // Of the best starts, the next few that no way has led to: false where there are none.
    PGWARP_HOST_DEVICE bool locate_starts(std::uint32_t& offered)
    {
        while (offered < shape_.again) {
            const std::uint32_t begin = offered;
            offered += smaller(most_located(), shape_.again - begin);
            locate(offered - begin, offered - begin, [&](std::uint32_t i) { return memory_.again()[begin + i]; });
            if (memory_.counters()[fresh_counter] > 0) return true;
            group_.sync();  // before the next is counted
        }
        return false;
    }

    // The queue has the best of the starts then, and the first row is in it or located. False: another group goes on.
    template <class Others>
    PGWARP_HOST_DEVICE bool begin_at(const TraversalStarts& starts, TraversalCounts& counts, const Others& others)
    {
        const std::uint32_t kept = smaller(starts.kept, shape_.length);
        const std::uint32_t noted = noted_starts(shape_, starts.kept);
        Queue<Group, Memory> few(group_, memory_, noted);
        few.clear();
        group_.sync();
        StartsPart part{0, starts.count};
        if constexpr (Others::shares) part = others.part(starts.count);
        look_at<Others::shares>(few, starts, part, noted, counts);
        if constexpr (Others::shares) {
            const auto nothing = [](std::uint32_t) {};
            const auto offer = [&few](Entry entry) { few.offer(entry); };
            if (!others.alone()) {
                if (!others.meet(few.entries(), noted, offer)) return false;
                take_scored(few, 0, counts, false, nothing, nothing);
            }
        }
        // The best are put down, to be offered again in the end; those kept stay in the queue.
        const Entry* entries = few.entries();
        for (std::uint32_t i = group_.rank(); i < shape_.again; i += group_.size()) {
            memory_.again()[i] = i < noted && entries[i] != no_entry ? row_of(entries[i]) : no_row_here;
        }
        group_.sync();
        queue_.continue_with(few, kept);
        if (Others::shares && starts.all_rows) {
            add_first(kept);
            group_.sync();
        } else {
            add_rows(1, [&](std::uint32_t) { return starts.first; });
        }
        return true;
    }

    // The first row has been scored with the others: it is kept, or farther than all that are. By one thread.
    PGWARP_HOST_DEVICE void add_first(std::uint32_t kept)
    {
        if (group_.rank() != 0 || kept == shape_.length) return;
        Entry* entries = queue_.entries();
        const Entry first = *memory_.first();
        if (first > entries[kept - 1]) entries[kept] = first;
    }

    // Batches grow: the first set a bound that most of the others do not pass, and sorting many takes long. What does
    // not stay is not remembered. notes_first: the entry of the first row is put down, where starts are all rows.
    template <bool notes_first>
    PGWARP_HOST_DEVICE void look_at(Queue<Group, Memory>& few, const TraversalStarts& starts, const StartsPart& part,
                                    std::uint32_t noted, TraversalCounts& counts)
    {
        std::uint32_t batch = 4 * noted;
        for (std::uint32_t begin = part.begin; begin < part.end && noted > 0;) {
            // Not a last one of few.
            if (part.end - begin < 2 * batch) batch = part.end - begin;
            batch = smaller(batch, shape_.most_fresh);
            const std::uint32_t end = begin + smaller(batch, part.end - begin);
            score_starts<notes_first>(few, starts, begin, end - begin, counts);
            begin = end;
            batch *= 4;
        }
    }

    template <bool notes_first>
    PGWARP_HOST_DEVICE void score_starts(Queue<Group, Memory>& queue, const TraversalStarts& starts,
                                         std::uint32_t begin, std::uint32_t count, TraversalCounts& counts)
    {
        const std::uint32_t* rows = starts.rows + begin;
        const auto nothing = [](std::uint32_t) {};
        if (!starts.all_rows) {
            add_rows(count, [rows](std::uint32_t i) { return rows[i]; });
            score(queue, memory_.rows(), memory_.counters()[fresh_counter], counts, starts.repeats, nothing, nothing);
            return;
        }
        const auto offer = [&](std::uint32_t i, Entry entry) {
            if (notes_first && begin == 0 && i == 0) *memory_.first() = entry;
            queue.offer(entry);
        };
        if constexpr (requires { scores_.seeds(rows, begin, count, offer); }) {
            scores_.seeds(rows, begin, count, offer);
        } else {
            scores_(rows, count, offer);
        }
        take_scored(queue, count, counts, starts.repeats, nothing, nothing);
    }

    PGWARP_HOST_DEVICE static std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
    PGWARP_HOST_DEVICE static std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a < b ? b : a; }
    PGWARP_HOST_DEVICE std::uint32_t most_located() const { return shape_.steps * shape_.degree; }

    PGWARP_HOST_DEVICE void clear_fresh()
    {
        if (group_.rank() != 0) return;
        memory_.counters()[fresh_counter] = 0;
        memory_.counters()[lost_counter] = 0;
    }

    // Of row_of_number(0) and so on those that is_wanted(row) go to rows(), to be scored.
    template <class RowOf, class Wanted>
    PGWARP_HOST_DEVICE void add_rows_if(std::uint32_t count, const RowOf& row_of_number, const Wanted& is_wanted)
    {
        // All threads of a warp go through the same turns.
        for (std::uint32_t base = 0; base < count; base += group_.size()) {
            const std::uint32_t i = base + group_.rank();
            const std::uint32_t row = i < count ? row_of_number(i) : no_row_here;
            const bool comes = row != no_row_here && is_wanted(row);
            const std::uint32_t place = group_.count(&memory_.counters()[fresh_counter], comes);
            if (comes) memory_.rows()[place] = row;
        }
        group_.sync();
    }
    template <class RowOf>
    PGWARP_HOST_DEVICE void add_rows(std::uint32_t count, const RowOf& row_of_number)
    {
        add_rows_if(count, row_of_number, [](std::uint32_t) { return true; });
    }
    // The same of rows that are not known. From `count` to `ahead` they will be located later: they are brought near.
    template <class RowOf>
    PGWARP_HOST_DEVICE void locate(std::uint32_t count, std::uint32_t ahead, const RowOf& row_of_number)
    {
        const auto is_new = [this](std::uint32_t row) {
            if (remembered_late_) return !visited_.contains(row);
            bool lost = false;
            const bool inserted = visited_.insert(row, lost);
            if (lost) group_.store(&memory_.counters()[lost_counter], 1);
            return inserted;
        };
        if constexpr (requires { scores_.prefetch(0U); }) {
            for (std::uint32_t i = count + group_.size() - 1 - group_.rank(); i < ahead; i += group_.size()) {
                const std::uint32_t row = row_of_number(i);
                if (row != no_row_here) scores_.prefetch(row);
            }
        }
        add_rows_if(count, row_of_number, is_new);
    }

    // Scores rows and takes them into a queue.
    template <class Entered, class Left>
    PGWARP_HOST_DEVICE Taken score(Queue<Group, Memory>& queue, const std::uint32_t* rows, std::uint32_t count,
                                   TraversalCounts& counts, bool repeats, const Entered& entered, const Left& left)
    {
        scores_(rows, count, [&](std::uint32_t, Entry entry) { queue.offer(entry); });
        return take_scored(queue, count, counts, repeats, entered, left);
    }
    template <class Entered, class Left>
    PGWARP_HOST_DEVICE Taken take_scored(Queue<Group, Memory>& queue, std::uint32_t count, TraversalCounts& counts,
                                         bool repeats, const Entered& entered, const Left& left)
    {
        group_.sync();
        clear_fresh();
        counts.scored += count;
        return queue.take_in(
            repeats, [this](std::uint32_t row, std::uint32_t place) { bring_near(row, place); }, entered, left);
    }

    // A row that comes at a place of the queue will soon be expanded, or is likely to be ranked.
    PGWARP_HOST_DEVICE void bring_near(std::uint32_t row, std::uint32_t place) const
    {
        constexpr std::uint32_t links_of_line = 32;
        if (place < shape_.near_places) {
            const std::uint32_t* links = neighbours_ + static_cast<std::size_t>(row) * shape_.degree;
            for (std::uint32_t i = 0; i < shape_.degree; i += links_of_line) group_.prefetch(links + i);
        }
        if constexpr (requires { scores_.prefetch_vector(row); }) {
            if (place < shape_.ranked) scores_.prefetch_vector(row);
        }
    }

    // What was located comes into the queue: the least place that one of it gets.
    PGWARP_HOST_DEVICE std::uint32_t admit(TraversalCounts& counts, bool repeats)
    {
        const std::uint32_t located = memory_.counters()[fresh_counter];
        const bool lost = memory_.counters()[lost_counter] != 0;
        const auto entered = [&](std::uint32_t row) {
            if (remembered_late_) visited_.insert_new(row);
        };
        const auto left = [&](std::uint32_t row) {
            if (shape_.deletes) visited_.erase(row);
        };
        const Taken taken = score(queue_, memory_.rows(), located, counts, repeats || lost, entered, left);
        remembered_ += remembered_late_ ? taken.entries : located;
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
    Queue<Group, Memory> queue_;
    Visited visited_;
    const std::uint32_t* neighbours_ = nullptr;
    const Scores& scores_;
    bool remembered_late_ = false;
    bool finds_repeats_ = false;  // of two threads that meet a row at a time, one is told that it is known
    std::uint32_t remembered_ = 0;
};

}  // namespace pgwarp::cuda::graph
