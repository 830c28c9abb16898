// The search of one text.
#include "methods/matchcount/text_search.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "methods/matchcount/block_counts.h"
#include "methods/matchcount/text_bounds.h"
#include "methods/ordered_scan.h"
#include "numeric/edit_scan.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::uint32_t step_texts = 512;  // compared at a time
constexpr std::uint32_t few_places = 64;   // of short lists, in an index of any size
constexpr std::uint64_t most_text_cost =
    1U << 22;  // of a comparison between two polls: characters times words of the query
constexpr std::uint32_t candidates_at_a_time = 64;

// Neighbours in the order of lengths, all on one side of the query's length.
struct Block {
    std::uint32_t begin;  // places
    std::uint32_t end;
    bool longer;        // than the query, or as long
    std::uint32_t gap;  // the least distance that lengths allow
};

class WindowSearch
{
public:
    WindowSearch(const TextIndex& index, const TextQuery& query)
        : index_(index),
          query_(query),
          bounds_(query.text, query.kind, index.form),
          scan_(query.text, query.kind),
          poll_{query.cancel != nullptr ? check_cancel : nullptr, const_cast<CancelToken*>(query.cancel)},
          first_(query.k),
          limit_(query.within)
    {
        bounds_.append_keywords(query.text, keywords_);
        lists_ = find_lists(index.lists, keywords_);
    }

    // Compares all texts within this distance that may be among the first.
    void compare_within(std::uint32_t limit, ThreadPool& pool);
    // The same by the shortest lists of the query's keywords; false where they are too long to be of use.
    bool compare_sharing_rare(std::uint32_t limit);
    // Forgets the results of a comparison within too small a distance.
    void restart();
    // Compares the texts that share most keywords with the query. Whether no other text can be among the first.
    bool compare_candidates(CountWorkspace& workspace);

    std::uint32_t small_distance() const { return bounds_.small_distance(); }
    // Whether candidates are few of the texts.
    bool has_candidates() const { return wanted_candidates() < index_.texts.count() / 2; }
    std::uint32_t wanted_candidates() const { return std::max(query_.least_candidates, 2 * std::min(query_.k, max_k)); }
    bool full() const { return first_.full(); }
    std::uint64_t compared() const { return compared_; }
    std::vector<RowResult> take_sorted() { return first_.take_sorted(); }

private:
    static void check_cancel(void* cancel) { static_cast<const CancelToken*>(cancel)->check(); }

    std::uint32_t length() const { return query_.text.length; }
    std::uint32_t gap_of(std::uint32_t place) const { return bounds_.gap(index_.texts.length(place)); }
    std::int64_t least_shared(std::uint32_t place, std::uint32_t limit) const
    {
        return bounds_.least_shared(index_.texts.length(place), limit);
    }

    // The places of texts whose lengths allow this distance.
    struct Window {
        std::uint32_t first;
        std::uint32_t last;  // excluded
    };
    Window window_within(std::uint32_t limit) const;
    std::vector<Block> blocks_within(std::uint32_t limit) const;
    bool is_left_out(std::uint32_t place, std::uint32_t limit) const;
    void compare_block(const Block& block);
    void append_near(std::uint32_t begin, std::uint32_t end, const std::uint8_t* counts,
                     std::vector<std::uint32_t>& places) const;
    // `places` ascend.
    void compare(std::span<const std::uint32_t> places);
    void offer(std::span<const std::uint32_t> places, std::span<const std::uint32_t> distances);

    const TextIndex& index_;
    const TextQuery& query_;
    const QueryBounds bounds_;
    const EditScan scan_;
    const EditPoll poll_;
    std::vector<std::uint32_t> keywords_;
    PostingLists lists_;
    std::vector<std::uint32_t> done_;  // places that were compared before the blocks, ascending

    std::mutex mutex_;
    FirstRows first_;
    std::atomic<std::uint32_t> limit_;  // the largest distance of interest
    std::atomic<std::uint64_t> compared_{0};
};

void WindowSearch::offer(std::span<const std::uint32_t> places, std::span<const std::uint32_t> distances)
{
    const std::uint32_t limit = limit_.load(std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (distances[i] > limit) continue;
        const RowResult found{static_cast<double>(distances[i]), index_.texts.row(places[i])};
        if (comes_before(query_.after, found)) first_.offer(found);
    }
    if (first_.full())
        limit_.store(std::min(limit, static_cast<std::uint32_t>(first_.last_distance())), std::memory_order_relaxed);
}

void WindowSearch::compare(std::span<const std::uint32_t> places)
{
    thread_local std::vector<std::uint32_t> distances;
    while (!places.empty()) {
        if (query_.cancel != nullptr) query_.cancel->check();
        // The last is the longest.
        const std::uint64_t cost = (length() / 64 + 1) * (std::uint64_t{index_.texts.length(places.back())} + 1);
        const std::size_t count = std::clamp<std::size_t>(most_text_cost / cost, 1, places.size());
        distances.resize(count);
        scan_.distances(index_.texts.texts(), places.first(count), limit_.load(std::memory_order_relaxed), distances,
                        poll_);
        compared_.fetch_add(count, std::memory_order_relaxed);
        offer(places.first(count), distances);
        places = places.subspan(count);
    }
}

bool WindowSearch::compare_candidates(CountWorkspace& workspace)
{
    std::vector<Item> items;
    for (const std::uint32_t keyword : keywords_) items.push_back({keyword, keyword});
    const std::uint32_t wanted = wanted_candidates();
    const std::vector<CountedRow> rows = search_counts(index_.lists, items, wanted, query_.dead, workspace).rows;

    std::vector<std::uint32_t> some;
    for (std::size_t i = 0; i < rows.size();) {
        const std::size_t end = std::min(rows.size(), i + candidates_at_a_time);
        const std::uint32_t limit = limit_.load(std::memory_order_relaxed);
        some.clear();
        for (; i < end; ++i) {
            const auto [place, count] = rows[i];
            if (gap_of(place) <= limit && count >= least_shared(place, limit)) some.push_back(place);
        }
        if (some.empty()) continue;
        std::ranges::sort(some);
        compare(some);
    }
    if (rows.size() < wanted) return true;
    const std::uint32_t limit = limit_.load(std::memory_order_relaxed);
    const bool bounded = first_.full() || limit < no_edit_limit;
    if (bounded && rows.back().count < bounds_.least_shared(length(), limit)) return true;
    for (const CountedRow& row : rows) done_.push_back(row.row);
    std::ranges::sort(done_);
    return false;
}

WindowSearch::Window WindowSearch::window_within(std::uint32_t limit) const
{
    const TextsByLength& texts = index_.texts;
    const std::uint64_t shortest = length() > limit ? length() - limit : 0;
    return {texts.first_of_length(shortest),
            bounds_.bounds_longer() ? texts.first_of_length(std::uint64_t{length()} + limit + 1) : texts.count()};
}

// Nearest lengths first.
std::vector<Block> WindowSearch::blocks_within(std::uint32_t limit) const
{
    const auto [first, last] = window_within(limit);
    const std::uint32_t middle = index_.texts.first_of_length(length());
    std::vector<Block> blocks;
    for (std::uint32_t begin = middle; begin < last; begin += std::min(block_texts, last - begin))
        blocks.push_back({begin, begin + std::min(block_texts, last - begin), true, gap_of(begin)});
    for (std::uint32_t end = middle; end > first; end -= std::min(block_texts, end - first))
        blocks.push_back({end - std::min(block_texts, end - first), end, false, gap_of(end - 1)});
    std::ranges::stable_sort(blocks, {}, &Block::gap);
    return blocks;
}

// Appends the places in [begin, end) whose texts no bound leaves out. `counts`: of shared keywords; may be null.
void WindowSearch::append_near(std::uint32_t begin, std::uint32_t end, const std::uint8_t* counts,
                               std::vector<std::uint32_t>& places) const
{
    const std::uint32_t limit = limit_.load(std::memory_order_relaxed);
    auto done = std::ranges::lower_bound(done_, begin);
    std::uint32_t place = begin;
    while (place < end) {
        const std::uint32_t other = index_.texts.length(place);
        const std::uint32_t end_of_length = std::min(end, index_.texts.first_of_length(std::uint64_t{other} + 1));
        const bool bounded = bounds_.counts_bound(other);
        const std::int64_t least = std::min<std::int64_t>(least_shared(place, limit), most_count);
        for (; place < end_of_length; ++place) {
            if (counts != nullptr && counts[place - begin] < least) continue;
            while (done != done_.end() && *done < place) ++done;
            if ((done != done_.end() && *done == place) || bit_is_set(query_.dead, place)) continue;
            if (bounded && bounds_.least_distance(index_.characters.at(place), other) > limit) continue;
            places.push_back(place);
        }
    }
}

void WindowSearch::compare_block(const Block& block)
{
    thread_local BlockCounts counts;
    thread_local std::vector<std::uint32_t> places;
    places.clear();
    // The bound grows with the length: without one for the last text there is none.
    const bool counted = least_shared(block.end - 1, limit_.load(std::memory_order_relaxed)) > 0;
    if (counted) count_block(lists_, block.begin, block.end, counts);
    const std::uint32_t steps = (block.end - block.begin + step_texts - 1) / step_texts;
    for (std::uint32_t step = 0; step < steps; ++step) {
        // Nearest lengths first.
        const std::uint32_t number = block.longer ? step : steps - 1 - step;
        const std::uint32_t begin = block.begin + number * step_texts;
        const std::uint32_t end = std::min(block.end, begin + step_texts);
        if (gap_of(block.longer ? begin : end - 1) > limit_.load(std::memory_order_relaxed)) break;
        append_near(begin, end, counted ? counts.data() + (begin - block.begin) : nullptr, places);
        if (places.size() < step_texts) continue;
        compare(places);
        places.clear();
    }
    if (!places.empty()) compare(places);
}

void WindowSearch::compare_within(std::uint32_t limit, ThreadPool& pool)
{
    limit_ = std::min(limit_.load(), limit);
    const std::vector<Block> blocks = blocks_within(limit_);
    pool.parallel_for(blocks.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            if (blocks[i].gap <= limit_.load(std::memory_order_relaxed)) compare_block(blocks[i]);
    });
}

bool WindowSearch::is_left_out(std::uint32_t place, std::uint32_t limit) const
{
    const std::uint32_t other = index_.texts.length(place);
    return bit_is_set(query_.dead, place) ||
           (bounds_.counts_bound(other) && bounds_.least_distance(index_.characters.at(place), other) > limit);
}

// A text within the limit lacks at most some number of the query's keywords, so it has one of any more than that: those
// with the shortest lists leave fewest texts.
bool WindowSearch::compare_sharing_rare(std::uint32_t limit)
{
    const std::int64_t least = bounds_.least_shared(length(), limit);
    if (least <= 0) return false;
    const std::size_t needed = keywords_.size() - static_cast<std::size_t>(least) + 1;
    const std::size_t empty = keywords_.size() - lists_.size();
    if (empty >= needed) return true;
    const auto end = lists_.begin() + static_cast<std::ptrdiff_t>(needed - empty);
    std::nth_element(lists_.begin(), end - 1, lists_.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });

    const auto [first, last] = window_within(limit);
    std::vector<std::uint32_t> places;
    for (auto list = lists_.begin(); list != end; ++list) {
        const auto begin = std::ranges::lower_bound(*list, first);
        const auto behind = std::lower_bound(begin, list->end(), last);
        if (places.size() + static_cast<std::size_t>(behind - begin) > few_places + (last - first) / 32) return false;
        places.insert(places.end(), begin, behind);
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    std::erase_if(places, [&](std::uint32_t place) { return is_left_out(place, limit); });
    limit_ = std::min(limit_.load(), limit);
    if (!places.empty()) compare(places);
    return true;
}

void WindowSearch::restart()
{
    first_ = FirstRows(query_.k);
    limit_ = query_.within;
}

}  // namespace

TextIndex make_text_index(TextsByLength texts, const GramForm& form, ThreadPool& pool)
{
    const std::uint32_t count = texts.count();
    BulkVector<std::uint64_t> offsets(std::size_t{count} + 1);
    offsets[0] = 0;
    for (std::uint32_t place = 0; place < count; ++place)
        offsets[place + 1] = offsets[place] + texts.length(place) + form.n - 1;
    BulkVector<std::uint32_t> keywords(offsets.back());
    pool.parallel_for(count, 1024, [&](std::size_t begin, std::size_t end) {
        std::vector<std::uint32_t> some;
        for (std::size_t place = begin; place < end; ++place) {
            some.clear();
            append_grams(texts.text(static_cast<std::uint32_t>(place)), form, some);
            std::ranges::copy(some, keywords.begin() + static_cast<std::ptrdiff_t>(offsets[place]));
        }
    });
    CharacterCounts characters(texts, pool);
    KeywordLists lists({offsets, keywords}, pool);
    return {form, std::move(texts), std::move(characters), std::move(lists)};
}

std::vector<RowResult> search_texts(const TextIndex& index, const TextQuery& query, CountWorkspace& workspace,
                                    ThreadPool& pool, SearchPath* path)
{
    if (query.k == 0) return {};
    WindowSearch search(index, query);
    SearchPath taken;
    const bool from_front = query.after.distance < 0;
    const std::uint32_t small = search.small_distance();
    const bool complete = query.within <= small;
    if (query.one_round && from_front && query.within == no_edit_limit && search.has_candidates()) {
        search.compare_candidates(workspace);
        return search.take_sorted();
    }
    const bool by_rare = complete && search.compare_sharing_rare(query.within);
    if ((from_front || complete) && !by_rare) search.compare_within(small, pool);
    if (!search.full() && !complete) {
        search.restart();
        taken.candidates = from_front && search.has_candidates();
        taken.proved = taken.candidates && search.compare_candidates(workspace);
        if (!taken.proved) search.compare_within(no_edit_limit, pool);
    }
    taken.compared = search.compared();
    if (path != nullptr) *path = taken;
    return search.take_sorted();
}

}  // namespace pgwarp::matchcount
