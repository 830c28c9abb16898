// The rows that a search has visited (SONG section 4: open addressing hash table, Bloom filter, Cuckoo filter), in
// memory that a group of threads shares. Free of CUDA: the group provides the atomic operations.
//
// A structure may forget a row. Then its score is computed again, and the queue already has the row, or rejects it
// again. So forgetting costs time and never changes the answer. The filters may also take a row for visited that is not
// (a false positive); such a row is skipped.
#pragma once

#include <cstdint>

#include "graph/entry.h"

namespace pgwarp::cuda::graph
{

enum class VisitedKind : std::uint8_t { hash = 0, bloom = 1, cuckoo = 2 };

// The words of a structure with `bits` bits of addresses.
PGWARP_HOST_DEVICE constexpr std::uint32_t visited_words(std::uint32_t bits)
{
    return 1U << bits;
}

namespace detail
{

inline constexpr std::uint32_t empty_slot = 0xffffffff;
inline constexpr std::uint32_t erased_slot = 0xfffffffe;

PGWARP_HOST_DEVICE inline std::uint32_t mixed(std::uint32_t row, std::uint32_t salt)
{
    std::uint32_t hash = row * 0x9E3779B1U + salt;
    hash ^= hash >> 15;
    hash *= 0x85EBCA77U;
    hash ^= hash >> 13;
    return hash;
}

}  // namespace detail

// A hash table of rows with open addressing. A row that finds no slot within most_steps steps is forgotten.
template <class Group>
class VisitedHash
{
public:
    static constexpr bool may_erase = true;
    static constexpr bool may_mistake = false;
    static constexpr bool finds_repeats = true;  // except of rows that it loses
    static constexpr std::uint32_t most_steps = 16;

    PGWARP_HOST_DEVICE VisitedHash(Group group, std::uint32_t* words, std::uint32_t bits)
        : group_(group), words_(words), bits_(bits)
    {
    }

    // Called by all threads of the group. The caller adds a barrier.
    PGWARP_HOST_DEVICE void clear()
    {
        for (std::uint32_t i = group_.rank(); i < visited_words(bits_); i += group_.size()) {
            words_[i] = detail::empty_slot;
        }
    }
    // The number of rows up to which few are forgotten.
    PGWARP_HOST_DEVICE std::uint32_t capacity() const { return visited_words(bits_) / 4 * 3; }

    PGWARP_HOST_DEVICE bool contains(std::uint32_t row) const
    {
        std::uint32_t slot = first_slot(row);
        for (std::uint32_t step = 0; step < most_steps; ++step) {
            const std::uint32_t there = group_.load(&words_[slot]);
            if (there == row) return true;
            if (there == detail::empty_slot) return false;
            slot = next(slot);
        }
        return false;
    }
    // Returns whether the row was not in the table. Sets `lost` where it is not remembered either. Not to be called
    // while other threads erase.
    PGWARP_HOST_DEVICE bool insert(std::uint32_t row, bool& lost)
    {
        std::uint32_t slot = first_slot(row);
        for (std::uint32_t step = 0; step < most_steps; ++step) {
            const std::uint32_t there = group_.compare_and_swap(&words_[slot], detail::empty_slot, row);
            if (there == detail::empty_slot) return true;
            if (there == row) return false;
            slot = next(slot);
        }
        lost = true;
        return true;
    }
    // Inserts a row that is not in the table, also into erased slots.
    PGWARP_HOST_DEVICE void insert_new(std::uint32_t row)
    {
        std::uint32_t slot = first_slot(row);
        for (std::uint32_t step = 0; step < most_steps; ++step) {
            for (std::uint32_t there = group_.load(&words_[slot]); there >= detail::erased_slot;) {
                const std::uint32_t found = group_.compare_and_swap(&words_[slot], there, row);
                if (found == there) return;
                there = found;
            }
            slot = next(slot);
        }
    }
    PGWARP_HOST_DEVICE void erase(std::uint32_t row)
    {
        std::uint32_t slot = first_slot(row);
        for (std::uint32_t step = 0; step < most_steps; ++step) {
            const std::uint32_t there = group_.load(&words_[slot]);
            if (there == detail::empty_slot) return;
            if (there == row) {
                group_.store(&words_[slot], detail::erased_slot);
                return;
            }
            slot = next(slot);
        }
    }

private:
    PGWARP_HOST_DEVICE std::uint32_t first_slot(std::uint32_t row) const { return (row * 0x9E3779B1U) >> (32 - bits_); }
    PGWARP_HOST_DEVICE std::uint32_t next(std::uint32_t slot) const { return (slot + 1) & (visited_words(bits_) - 1); }

    Group group_;
    std::uint32_t* words_;
    std::uint32_t bits_;
};

// A Bloom filter with four hash functions. It cannot erase.
template <class Group>
class VisitedBloom
{
public:
    static constexpr bool may_erase = false;
    static constexpr bool may_mistake = true;
    static constexpr bool finds_repeats = false;

    PGWARP_HOST_DEVICE VisitedBloom(Group group, std::uint32_t* words, std::uint32_t bits)
        : group_(group), words_(words), bits_(bits)
    {
    }
    PGWARP_HOST_DEVICE void clear()
    {
        for (std::uint32_t i = group_.rank(); i < visited_words(bits_); i += group_.size()) words_[i] = 0;
    }
    // At 12 bits a row about 3 in 1,000 are false positives.
    PGWARP_HOST_DEVICE std::uint32_t capacity() const { return visited_words(bits_) * 32 / 12; }

    PGWARP_HOST_DEVICE bool contains(std::uint32_t row) const
    {
        bool all = true;
        for (std::uint32_t i = 0; i < functions; ++i) {
            const std::uint32_t bit = bit_of(row, i);
            all = all && ((group_.load(&words_[bit / 32]) >> (bit % 32)) & 1U) != 0;
        }
        return all;
    }
    PGWARP_HOST_DEVICE bool insert(std::uint32_t row, bool&)
    {
        bool all = true;
        for (std::uint32_t i = 0; i < functions; ++i) {
            const std::uint32_t bit = bit_of(row, i);
            const std::uint32_t there = group_.set_bits(&words_[bit / 32], 1U << (bit % 32));
            all = all && ((there >> (bit % 32)) & 1U) != 0;
        }
        return !all;
    }
    PGWARP_HOST_DEVICE void insert_new(std::uint32_t row)
    {
        bool lost = false;
        insert(row, lost);
    }
    PGWARP_HOST_DEVICE void erase(std::uint32_t) {}

private:
    static constexpr std::uint32_t functions = 4;
    PGWARP_HOST_DEVICE std::uint32_t bit_of(std::uint32_t row, std::uint32_t function) const
    {
        const std::uint32_t first = detail::mixed(row, 0);
        const std::uint32_t step = detail::mixed(row, 0x27D4EB2FU) | 1U;
        return (first + function * step) & (visited_words(bits_) * 32 - 1);
    }

    Group group_;
    std::uint32_t* words_;
    std::uint32_t bits_;
};

// A Cuckoo filter (Fan et al. 2014): each row has two buckets, each bucket is one word with two fingerprints of 16
// bits. A fingerprint that is displaced too often is forgotten.
template <class Group>
class VisitedCuckoo
{
public:
    static constexpr bool may_erase = true;
    static constexpr bool may_mistake = true;
    static constexpr bool finds_repeats = false;

    PGWARP_HOST_DEVICE VisitedCuckoo(Group group, std::uint32_t* words, std::uint32_t bits)
        : group_(group), words_(words), bits_(bits)
    {
    }
    PGWARP_HOST_DEVICE void clear()
    {
        for (std::uint32_t i = group_.rank(); i < visited_words(bits_); i += group_.size()) words_[i] = 0;
    }
    PGWARP_HOST_DEVICE std::uint32_t capacity() const { return visited_words(bits_) * 2 / 4 * 3; }

    PGWARP_HOST_DEVICE bool contains(std::uint32_t row) const
    {
        const std::uint32_t print = fingerprint(row);
        const std::uint32_t bucket = first_bucket(row);
        return holds(group_.load(&words_[bucket]), print) || holds(group_.load(&words_[other(bucket, print)]), print);
    }
    PGWARP_HOST_DEVICE bool insert(std::uint32_t row, bool&)
    {
        if (contains(row)) return false;
        insert_new(row);
        return true;
    }
    PGWARP_HOST_DEVICE void insert_new(std::uint32_t row)
    {
        std::uint32_t print = fingerprint(row);
        std::uint32_t bucket = first_bucket(row);
        if (place(bucket, print)) return;
        bucket = other(bucket, print);
        for (std::uint32_t turn = 0; turn < most_turns; ++turn) {
            if (place(bucket, print)) return;
            // Displaces the two fingerprints in turn.
            const std::uint32_t shift = 16 * (turn & 1U);
            const std::uint32_t there = group_.load(&words_[bucket]);
            const std::uint32_t changed = (there & ~(0xffffU << shift)) | print << shift;
            if (group_.compare_and_swap(&words_[bucket], there, changed) != there) continue;
            print = there >> shift & 0xffffU;
            if (print == 0) return;
            bucket = other(bucket, print);
        }
    }
    PGWARP_HOST_DEVICE void erase(std::uint32_t row)
    {
        const std::uint32_t print = fingerprint(row);
        const std::uint32_t bucket = first_bucket(row);
        if (!remove(bucket, print)) remove(other(bucket, print), print);
    }

private:
    static constexpr std::uint32_t most_turns = 16;

    // Never 0, which marks an empty place.
    PGWARP_HOST_DEVICE static std::uint32_t fingerprint(std::uint32_t row)
    {
        const std::uint32_t print = detail::mixed(row, 0x165667B1U) & 0xffffU;
        return print == 0 ? 1 : print;
    }
    PGWARP_HOST_DEVICE std::uint32_t first_bucket(std::uint32_t row) const
    {
        return detail::mixed(row, 0) & (visited_words(bits_) - 1);
    }
    PGWARP_HOST_DEVICE std::uint32_t other(std::uint32_t bucket, std::uint32_t print) const
    {
        return (bucket ^ detail::mixed(print, 0x27D4EB2FU)) & (visited_words(bits_) - 1);
    }
    PGWARP_HOST_DEVICE static bool holds(std::uint32_t word, std::uint32_t print)
    {
        return (word & 0xffffU) == print || word >> 16 == print;
    }
    PGWARP_HOST_DEVICE bool place(std::uint32_t bucket, std::uint32_t print)
    {
        for (std::uint32_t there = group_.load(&words_[bucket]);;) {
            std::uint32_t changed = 0;
            if ((there & 0xffffU) == 0) {
                changed = there | print;
            } else if (there >> 16 == 0) {
                changed = there | print << 16;
            } else {
                return false;
            }
            const std::uint32_t found = group_.compare_and_swap(&words_[bucket], there, changed);
            if (found == there) return true;
            there = found;
        }
    }
    PGWARP_HOST_DEVICE bool remove(std::uint32_t bucket, std::uint32_t print)
    {
        for (std::uint32_t there = group_.load(&words_[bucket]); holds(there, print);) {
            const std::uint32_t changed = (there & 0xffffU) == print ? there & 0xffff0000U : there & 0xffffU;
            const std::uint32_t found = group_.compare_and_swap(&words_[bucket], there, changed);
            if (found == there) return true;
            there = found;
        }
        return false;
    }

    Group group_;
    std::uint32_t* words_;
    std::uint32_t bits_;
};

}  // namespace pgwarp::cuda::graph
