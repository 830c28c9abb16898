// The search under the Jaccard distance of grams.
#include "methods/matchcount/gram_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "methods/matchcount/block_counts.h"
#include "methods/ordered_scan.h"
#include "numeric/gram_distance.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr double count_slack = 1e-6;         // of a least count, against rounding
constexpr std::uint64_t most_cost = 100000;  // of comparisons between two polls, in characters

class Search
{
public:
    Search(const TextIndex& index, const GramQuery& query)
        : index_(index), query_(query), first_(query.k), limit_(query.within)
    {
        append_grams(query.text, index.form, keywords_);
        lists_ = find_lists(index.lists, keywords_);
    }

    std::uint32_t wanted_candidates() const { return std::max(query_.least_candidates, 2 * std::min(query_.k, max_k)); }
    // Whether candidates are few of the texts.
    bool has_candidates() const { return wanted_candidates() < index_.texts.count() / 2; }
    void compare_candidates(CountWorkspace& workspace);
    void compare_all(ThreadPool& pool);
    std::vector<RowResult> take_sorted() { return first_.take_sorted(); }

private:
    // The pattern of one thread.
    class Pattern
    {
    public:
        explicit Pattern(const TextView& text)
            : memory_(GramPattern::memory_words(text)), pattern_(text, memory_.data())
        {
        }
        double distance(const TextView& text) const { return pattern_.distance(text); }

    private:
        std::vector<std::uint64_t> memory_;
        GramPattern pattern_;
    };

    std::uint32_t least_count(std::uint32_t length) const;
    void compare_block(std::uint32_t begin, std::uint32_t end, const Pattern& pattern);
    void compare(std::uint32_t place, std::uint32_t count, const Pattern& pattern);
    void offer(std::uint32_t place, double distance);
    void poll(std::uint32_t length);

    const TextIndex& index_;
    const GramQuery& query_;
    std::vector<std::uint32_t> keywords_;
    PostingLists lists_;
    std::vector<std::uint32_t> done_;  // places of candidates, ascending

    std::mutex mutex_;
    FirstRows first_;
    std::atomic<double> limit_;  // the largest distance of interest
};

// The least number of common grams of a text of this length within the limit.
std::uint32_t Search::least_count(std::uint32_t length) const
{
    const double limit = limit_.load(std::memory_order_relaxed);
    if (limit >= 1) return 0;
    const double grams = distance_grams(query_.text.length) + static_cast<double>(distance_grams(length));
    const double least = (1 - limit) * grams / (2 - limit) - count_slack;
    return static_cast<std::uint32_t>(std::max(0.0, std::ceil(least)));
}

void Search::offer(std::uint32_t place, double distance)
{
    if (distance > limit_.load(std::memory_order_relaxed)) return;
    const RowResult found{distance, index_.texts.row(place)};
    if (!comes_before(query_.after, found)) return;
    const std::lock_guard lock(mutex_);
    first_.offer(found);
    if (first_.full())
        limit_.store(std::min(limit_.load(std::memory_order_relaxed), first_.last_distance()),
                     std::memory_order_relaxed);
}

void Search::poll(std::uint32_t length)
{
    thread_local std::uint64_t cost = 0;
    cost += length;
    if (cost < most_cost) return;
    cost = 0;
    if (query_.cancel != nullptr) query_.cancel->check();
}

void Search::compare(std::uint32_t place, std::uint32_t count, const Pattern& pattern)
{
    if (count == 0) return offer(place, 1.0);
    const TextView text = index_.texts.text(place);
    poll(text.length);
    offer(place, pattern.distance(text));
}

void Search::compare_candidates(CountWorkspace& workspace)
{
    std::vector<Item> items;
    for (const std::uint32_t keyword : keywords_) items.push_back({keyword, keyword});
    const Pattern pattern(query_.text);
    for (const CountedRow& row : search_counts(index_.lists, items, wanted_candidates(), query_.dead, workspace).rows) {
        if (row.count > 0 && row.count < least_count(index_.texts.length(row.row))) continue;
        compare(row.row, row.count, pattern);
        done_.push_back(row.row);
    }
    std::ranges::sort(done_);
}

void Search::compare_block(std::uint32_t begin, std::uint32_t end, const Pattern& pattern)
{
    thread_local BlockCounts counts;
    if (query_.cancel != nullptr) query_.cancel->check();
    count_block(lists_, begin, end, counts);
    auto done = std::ranges::lower_bound(done_, begin);
    for (std::uint32_t place = begin; place < end;) {
        const std::uint32_t length = index_.texts.length(place);
        const std::uint32_t end_of_length = std::min(end, index_.texts.first_of_length(std::uint64_t{length} + 1));
        const std::uint32_t least = std::min(least_count(length), most_count);
        for (; place < end_of_length; ++place) {
            if (counts[place - begin] < least) continue;
            while (done != done_.end() && *done < place) ++done;
            if ((done != done_.end() && *done == place) || bit_is_set(query_.dead, place)) continue;
            compare(place, counts[place - begin], pattern);
        }
    }
}

void Search::compare_all(ThreadPool& pool)
{
    const std::uint32_t texts = index_.texts.count();
    const std::uint32_t blocks = (texts + block_texts - 1) / block_texts;
    pool.parallel_for(blocks, 1, [&](std::size_t begin, std::size_t end) {
        const Pattern pattern(query_.text);
        for (std::size_t i = begin; i < end; ++i) {
            const auto first = static_cast<std::uint32_t>(i) * block_texts;
            compare_block(first, std::min(texts, first + block_texts), pattern);
        }
    });
}

}  // namespace

std::vector<RowResult> search_grams(const TextIndex& index, const GramQuery& query, CountWorkspace& workspace,
                                    ThreadPool& pool)
{
    if (query.k == 0) return {};
    Search search(index, query);
    const bool from_front = query.after.distance < 0;
    if (from_front && query.within >= 1) search.compare_candidates(workspace);
    const bool ends = query.one_round && from_front && std::isinf(query.within) && search.has_candidates();
    if (!ends) search.compare_all(pool);
    return search.take_sorted();
}

}  // namespace pgwarp::matchcount
