// The making of the dictionary. Each thread collects the distinct parts of some rows in tables that stay in the cache.
// They are distributed to pieces of the order by splitters, sorted and united. A hash table then gives all parts their
// ranks.
#include "methods/matchcount/part_dictionary.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <compare>
#include <mutex>
#include <random>
#include <utility>

#include "methods/errors.h"

namespace pgwarp::matchcount
{

namespace
{

// A secret keeps users from choosing parts that collide.
const std::uint64_t secret = std::random_device{}() * 0x9e3779b97f4a7c15U;

std::uint64_t mixed(std::uint64_t number)
{
    number = (number ^ number >> 32) * 0xd6e8feb86659fd93U;
    return number ^ number >> 32;
}

struct Element {
    static constexpr std::size_t words = set_words;
    std::uint64_t value;

    static Element at(const std::uint32_t* from) { return {part_number(from)}; }
    std::uint64_t name() const { return no_name; }
    std::uint64_t hash() const { return mixed(value ^ secret); }
    auto operator<=>(const Element&) const = default;
};

// A term without its frequency.
struct Term {
    static constexpr std::size_t words = bag_words;
    std::uint64_t value;

    static Term at(const std::uint32_t* from) { return {term_of(part_number(from))}; }
    std::uint64_t name() const { return no_name; }
    std::uint64_t hash() const { return mixed(value ^ secret); }
    auto operator<=>(const Term&) const = default;
};

struct Attribute {
    static constexpr std::size_t words = attribute_words;
    std::uint64_t attribute_name;
    std::uint64_t value;

    static Attribute at(const std::uint32_t* from) { return {part_number(from), part_number(from + 2)}; }
    std::uint64_t name() const { return attribute_name; }
    std::uint64_t hash() const { return mixed(mixed(attribute_name ^ secret) + value); }
    auto operator<=>(const Attribute&) const = default;
};

// All parts of the rows, one after the other.
template <class Part>
class AllParts
{
public:
    explicit AllParts(const RowView& rows)
        : words_(rows.words + rows.offsets[0]), count_(static_cast<std::size_t>(rows.word_count() / Part::words))
    {
    }
    std::size_t count() const { return count_; }
    Part operator[](std::size_t i) const { return Part::at(words_ + i * Part::words); }

private:
    const std::uint32_t* words_;
    std::size_t count_;
};

// A set of parts by open addressing, of at most `most`.
template <class Part>
class DistinctParts
{
public:
    static constexpr std::size_t most = std::size_t{1} << 17;

    DistinctParts() : slots_(1024) {}

    void insert(const Part& part)
    {
        std::size_t at = part.hash() & (slots_.size() - 1);
        for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1))
            if (parts_[slots_[at] - 1] == part) return;
        parts_.push_back(part);
        slots_[at] = static_cast<std::uint32_t>(parts_.size());
        if (2 * parts_.size() >= slots_.size()) grow();
    }
    bool full() const { return parts_.size() >= most; }
    // Returns the parts in any order; none are left.
    std::vector<Part> take()
    {
        std::fill(slots_.begin(), slots_.end(), 0U);
        return std::exchange(parts_, {});
    }

private:
    void grow()
    {
        slots_.assign(slots_.size() * 4, 0);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            std::size_t at = parts_[i].hash() & (slots_.size() - 1);
            while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = static_cast<std::uint32_t>(i + 1);
        }
    }

    std::vector<std::uint32_t> slots_;  // 1 + the place in parts_; 0: free
    std::vector<Part> parts_;
};

// Parts in any order; a part comes once in a run.
template <class Part>
using Runs = std::vector<std::vector<Part>>;

template <class Part>
Runs<Part> collect_runs(const AllParts<Part>& parts, ThreadPool& pool)
{
    constexpr std::size_t least = 65536;  // parts of a thread
    const std::size_t chunks = std::clamp<std::size_t>(parts.count() / least, 1, 4 * pool.threads());
    Runs<Part> runs;
    std::mutex mutex;
    const auto add = [&](std::vector<Part> run) {
        const std::lock_guard lock(mutex);
        runs.push_back(std::move(run));
    };
    pool.parallel_for(chunks, 1, [&](std::size_t begin, std::size_t end) {
        DistinctParts<Part> distinct;
        for (std::size_t i = parts.count() * begin / chunks; i < parts.count() * end / chunks; ++i) {
            distinct.insert(parts[i]);
            if (distinct.full()) add(distinct.take());
        }
        add(distinct.take());
    });
    return runs;
}

// Chooses parts that divide the runs into pieces of about equal size.
template <class Part>
std::vector<Part> choose_splitters(const Runs<Part>& runs, std::size_t total)
{
    constexpr std::size_t piece = 65536;
    constexpr std::size_t most_pieces = 4096;
    constexpr std::size_t sample_of_piece = 32;
    const std::size_t pieces = std::clamp<std::size_t>(total / piece, 1, most_pieces);
    const std::size_t step = std::max<std::size_t>(1, total / (pieces * sample_of_piece));
    std::vector<Part> sample;
    std::size_t skipped = 0;
    for (const std::vector<Part>& run : runs) {
        for (; skipped < run.size(); skipped += step) sample.push_back(run[skipped]);
        skipped -= run.size();
    }
    std::sort(sample.begin(), sample.end());
    sample.erase(std::unique(sample.begin(), sample.end()), sample.end());
    std::vector<Part> splitters;
    for (std::size_t i = 1; i < pieces; ++i)
        if (const std::size_t at = sample.size() * i / pieces; at > 0) splitters.push_back(sample[at]);
    splitters.erase(std::unique(splitters.begin(), splitters.end()), splitters.end());
    return splitters;
}

// Moves the runs' parts to the pieces of the order.
template <class Part>
std::vector<BulkVector<Part>> distribute(Runs<Part>& runs, std::span<const Part> splitters, ThreadPool& pool)
{
    const auto piece_of = [&](const Part& part) {
        return static_cast<std::size_t>(std::upper_bound(splitters.begin(), splitters.end(), part) - splitters.begin());
    };
    const std::size_t pieces = splitters.size() + 1;
    std::vector<std::vector<std::size_t>> places(runs.size());  // [run][piece]: parts, then their first place
    std::vector<std::vector<std::uint16_t>> piece_of_part(runs.size());
    pool.parallel_for(runs.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            places[i].resize(pieces);
            for (const Part& part : runs[i]) {
                const std::size_t piece = piece_of(part);
                ++places[i][piece];
                piece_of_part[i].push_back(static_cast<std::uint16_t>(piece));
            }
        }
    });
    std::vector<BulkVector<Part>> out(pieces);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
        std::size_t place = 0;
        for (std::vector<std::size_t>& run : places) place += std::exchange(run[piece], place);
        out[piece].resize(place);
    }
    pool.parallel_for(runs.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            for (std::size_t at = 0; at < runs[i].size(); ++at) {
                const std::size_t piece = piece_of_part[i][at];
                out[piece][places[i][piece]++] = runs[i][at];
            }
            runs[i] = {};
        }
    });
    return out;
}

// Returns the distinct parts, ascending.
template <class Part>
BulkVector<Part> sorted_parts(const AllParts<Part>& parts, ThreadPool& pool)
{
    Runs<Part> runs = collect_runs(parts, pool);
    std::size_t total = 0;
    for (const std::vector<Part>& run : runs) total += run.size();
    const std::vector<Part> splitters = choose_splitters(runs, total);
    std::vector<BulkVector<Part>> pieces = distribute<Part>(runs, splitters, pool);
    pool.parallel_for(pieces.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::sort(pieces[i].begin(), pieces[i].end());
            pieces[i].erase(std::unique(pieces[i].begin(), pieces[i].end()), pieces[i].end());
        }
    });
    std::size_t distinct = 0;
    for (const BulkVector<Part>& piece : pieces) distinct += piece.size();
    if (distinct >= 0xffffffff) throw BadRequest("too many distinct elements or values");
    BulkVector<Part> sorted;
    sorted.reserve(distinct);
    for (BulkVector<Part>& piece : pieces) {
        sorted.insert(sorted.end(), piece.begin(), piece.end());
        piece = {};
    }
    return sorted;
}

// The ranks of parts, by a hash table.
template <class Part>
class Ranks
{
public:
    Ranks(std::span<const Part> sorted, ThreadPool& pool)
        : sorted_(sorted), slots_(std::bit_ceil(2 * sorted.size() + 1))
    {
        std::fill(slots_.begin(), slots_.end(), no_rank);
        pool.parallel_for(sorted.size(), 65536, [&](std::size_t begin, std::size_t end) {
            for (std::size_t rank = begin; rank < end; ++rank) add(static_cast<std::uint32_t>(rank));
        });
    }

    // Writes the ranks of parts [begin, end), which are all in the table, to out[]. Some are looked up at a time, so
    // that their cache misses overlap.
    void find(const AllParts<Part>& parts, std::size_t begin, std::size_t end, std::uint32_t* out) const
    {
        constexpr std::size_t at_a_time = 16;
        std::size_t slot[at_a_time];
        for (; begin < end; begin += at_a_time) {
            const std::size_t count = std::min(at_a_time, end - begin);
            for (std::size_t i = 0; i < count; ++i) {
                slot[i] = first_slot(parts[begin + i]);
                __builtin_prefetch(&slots_[slot[i]]);
            }
            for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(&sorted_[slots_[slot[i]]]);
            for (std::size_t i = 0; i < count; ++i) out[begin + i] = find_from(slot[i], parts[begin + i]);
        }
    }

private:
    static constexpr std::uint32_t no_rank = 0xffffffff;

    std::size_t first_slot(const Part& part) const { return part.hash() & (slots_.size() - 1); }
    void add(std::uint32_t rank)
    {
        for (std::size_t at = first_slot(sorted_[rank]);; at = (at + 1) & (slots_.size() - 1)) {
            std::uint32_t none = no_rank;
            const std::atomic_ref<std::uint32_t> slot(slots_[at]);
            if (slot.compare_exchange_strong(none, rank, std::memory_order_relaxed)) return;
        }
    }
    std::uint32_t find_from(std::size_t at, const Part& part) const
    {
        while (sorted_[slots_[at]] != part) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }

    std::span<const Part> sorted_;
    BulkVector<std::uint32_t> slots_;
};

template <class Part>
PartDictionary dictionary_of(std::span<const Part> sorted)
{
    std::vector<std::uint64_t> names;
    std::vector<std::uint32_t> firsts;
    BulkVector<std::uint64_t> values(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        values[i] = sorted[i].value;
        if (!names.empty() && names.back() == sorted[i].name()) continue;
        names.push_back(sorted[i].name());
        firsts.push_back(static_cast<std::uint32_t>(i));
    }
    firsts.push_back(static_cast<std::uint32_t>(sorted.size()));
    return {std::move(names), std::move(firsts), std::move(values)};
}

template <class Part>
RankedRows rank(const RowView& rows, ThreadPool& pool)
{
    const AllParts<Part> parts(rows);
    RankedRows ranked;
    const BulkVector<Part> sorted = sorted_parts(parts, pool);
    const Ranks<Part> ranks(sorted, pool);
    ranked.keywords.resize(parts.count());
    pool.parallel_for(parts.count(), 65536, [&](std::size_t begin, std::size_t end) {
        ranks.find(parts, begin, end, ranked.keywords.data());
    });
    ranked.offsets.resize(rows.count + 1);
    for (std::size_t i = 0; i <= rows.count; ++i) ranked.offsets[i] = (rows.offsets[i] - rows.offsets[0]) / Part::words;
    ranked.dictionary = dictionary_of<Part>(sorted);
    return ranked;
}

}  // namespace

Item PartDictionary::find(std::uint64_t name, std::uint64_t first, std::uint64_t last) const
{
    constexpr Item nothing{1, 0};
    const auto found = std::lower_bound(names_.begin(), names_.end(), name);
    if (found == names_.end() || *found != name) return nothing;
    const auto number = static_cast<std::size_t>(found - names_.begin());
    const std::uint64_t* const values = values_.data();
    const std::uint64_t* const end = values + firsts_[number + 1];
    const std::uint64_t* const from = std::lower_bound(values + firsts_[number], end, first);
    const std::uint64_t* const to =
        first == last ? (from == end || *from != first ? from : from + 1) : std::upper_bound(from, end, last);
    if (from == to) return nothing;
    return {static_cast<std::uint32_t>(from - values), static_cast<std::uint32_t>(to - values - 1)};
}

RankedRows rank_parts(const RowView& rows, ElementType element, ThreadPool& pool)
{
    if (element == ElementType::bag) return rank<Term>(rows, pool);
    return element == ElementType::set ? rank<Element>(rows, pool) : rank<Attribute>(rows, pool);
}

}  // namespace pgwarp::matchcount
