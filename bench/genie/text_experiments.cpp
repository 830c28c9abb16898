// Table 3: how often one round of counts finds the nearest title, and the certified search.
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "experiments.h"
#include "methods/matchcount/text_search.h"
#include "methods/rows/owned_rows.h"

namespace pgwarp::bench::genie
{

namespace
{

using namespace pgwarp::matchcount;

constexpr std::uint32_t candidates = 500;  // K of section 7.1.1
constexpr std::size_t query_length = 40;

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TextView view_of(const std::string& text)
{
    return {static_cast<std::uint32_t>(text.size()), 1, text.data()};
}

// Levenshtein distances of a pattern of 1 to 64 characters, by bit vectors (Myers 1999).
class Pattern
{
public:
    explicit Pattern(const std::string& pattern) : length_(static_cast<std::uint32_t>(pattern.size()))
    {
        for (std::size_t i = 0; i < pattern.size(); ++i)
            masks_[static_cast<unsigned char>(pattern[i])] |= std::uint64_t{1} << i;
    }
    std::uint32_t length() const { return length_; }
    std::uint32_t distance(const std::string& text) const
    {
        std::uint64_t up = ~std::uint64_t{0};
        std::uint64_t down = 0;
        const std::uint64_t last = std::uint64_t{1} << (length_ - 1);
        std::uint32_t distance = length_;
        for (const char c : text) {
            const std::uint64_t equal = masks_[static_cast<unsigned char>(c)];
            const std::uint64_t zero = (((equal & up) + up) ^ up) | equal | down;
            std::uint64_t right = down | ~(zero | up);
            std::uint64_t left = up & zero;
            distance += (right & last) != 0 ? 1 : 0;
            distance -= (left & last) != 0 ? 1 : 0;
            right = right << 1 | 1;
            left <<= 1;
            up = left | ~(zero | right);
            down = right & zero;
        }
        return distance;
    }

private:
    std::uint32_t length_;
    std::uint64_t masks_[256] = {};
};

struct Work {
    std::vector<std::string> titles;
    std::vector<std::uint32_t> fitting;  // those of the queries' length
    KeywordLists lists;                  // of titles, in their order
    TextIndex index;
};

KeywordLists gram_lists(const std::vector<std::string>& titles, ThreadPool& pool)
{
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> keywords;
    for (const std::string& title : titles) {
        append_grams(view_of(title), GramForm{}, keywords);
        offsets.push_back(keywords.size());
    }
    return {KeywordRows{offsets, keywords}, pool};
}

OwnedRows text_rows(const std::vector<std::string>& titles)
{
    OwnedRows rows;
    for (const std::string& title : titles) {
        std::vector<std::uint32_t> characters;
        for (const char c : title) characters.push_back(static_cast<unsigned char>(c));
        std::vector<std::uint32_t> words(text_words(static_cast<std::uint32_t>(title.size()), text_width(characters)));
        pack_text(characters, words.data());
        const std::uint64_t offsets[2] = {0, words.size()};
        RowView row;
        row.count = 1;
        row.offsets = offsets;
        row.words = words.data();
        rows.append(row);
    }
    return rows;
}

Work make_work(std::vector<std::string> titles, ThreadPool& pool)
{
    std::vector<std::uint32_t> fitting;
    for (std::uint32_t i = 0; i < titles.size(); ++i)
        if (titles[i].size() == query_length) fitting.push_back(i);
    KeywordLists lists = gram_lists(titles, pool);
    TextIndex index = make_text_index(TextsByLength(text_rows(titles).view(), pool), GramForm{}, pool);
    return {std::move(titles), std::move(fitting), std::move(lists), std::move(index)};
}

// The nearest of the titles whose lengths allow a distance of at most `edits`.
std::uint32_t nearest_by_brute_force(const Work& work, const std::string& query, std::uint32_t edits)
{
    const Pattern pattern(query);
    std::uint32_t least = edits;
    for (const std::string& title : work.titles)
        if (std::abs(static_cast<long>(title.size()) - static_cast<long>(query.size())) <= static_cast<long>(least))
            least = std::min(least, pattern.distance(title));
    return least;
}

// The least distance among the candidates of one round, and whether theorem 6.2 proves it.
std::pair<std::uint32_t, bool> nearest_of_one_round(const Work& work, const std::string& query,
                                                    CountWorkspace& workspace)
{
    std::vector<std::uint32_t> keywords;
    append_grams(view_of(query), GramForm{}, keywords);
    std::vector<Item> items;
    for (const std::uint32_t keyword : keywords) items.push_back({keyword, keyword});
    const std::vector<CountedRow> rows = search_counts(work.lists, items, candidates, {}, workspace).rows;
    const Pattern pattern(query);
    std::uint32_t least = no_row;
    for (const CountedRow& row : rows) least = std::min(least, pattern.distance(work.titles[row.row]));
    const auto length = static_cast<std::uint32_t>(query.size());
    return {least, rows.back().count < least_shared_grams(length, length, GramForm{}, least)};
}

struct Found {
    std::vector<std::uint32_t> truth;
    std::vector<std::uint32_t> one_round;
    std::vector<std::uint32_t> certified;
    std::size_t proved = 0;
    double one_round_s = 0;
    double certified_s = 0;
};

double share_right(const std::vector<std::uint32_t>& distances, const std::vector<std::uint32_t>& truth)
{
    std::size_t right = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) right += distances[i] == truth[i] ? 1U : 0U;
    return static_cast<double>(right) / static_cast<double>(truth.size());
}

Found search(const Work& work, const std::vector<std::string>& queries, std::uint32_t edits, ThreadPool& pool)
{
    Found found;
    for (auto* distances : {&found.truth, &found.one_round, &found.certified}) distances->resize(queries.size());
    std::vector<char> proved(queries.size());
    auto begin = std::chrono::steady_clock::now();
    pool.parallel_for(queries.size(), 1, [&](std::size_t first, std::size_t last) {
        static thread_local CountWorkspace workspace;
        for (std::size_t q = first; q < last; ++q) {
            const auto [distance, is_proved] = nearest_of_one_round(work, queries[q], workspace);
            found.one_round[q] = distance;
            proved[q] = is_proved ? 1 : 0;
        }
    });
    found.one_round_s = seconds_since(begin);
    found.proved = static_cast<std::size_t>(std::count(proved.begin(), proved.end(), 1));
    begin = std::chrono::steady_clock::now();
    pool.parallel_for(queries.size(), 1, [&](std::size_t first, std::size_t last) {
        static thread_local CountWorkspace workspace;
        for (std::size_t q = first; q < last; ++q) {
            TextQuery query;
            query.text = view_of(queries[q]);
            query.k = 1;
            found.certified[q] =
                static_cast<std::uint32_t>(search_texts(work.index, query, workspace, caller_alone()).front().distance);
        }
    });
    found.certified_s = seconds_since(begin);
    pool.parallel_for(queries.size(), 1, [&](std::size_t first, std::size_t last) {
        for (std::size_t q = first; q < last; ++q) found.truth[q] = nearest_by_brute_force(work, queries[q], edits);
    });
    return found;
}

}  // namespace

void run_edits(const Plan& plan, ThreadPool& pool)
{
    if (!plan.sources.has("titles")) {
        std::printf("skipped: table 3, titles.tsv is not there\n");
        return;
    }
    std::printf("table 3\n");
    const Work work = make_work(plan.sources.texts("titles"), pool);
    Table table(plan.output, "table3",
                "device method data rows queries characters edited edits seed K accuracy proved query_ms");
    const std::size_t count = plan.sources.quick() ? 64 : 1024;
    for (const Edits kind : {Edits::substitutions, Edits::others}) {
        const char* const name = kind == Edits::substitutions ? "substitutions" : "insertions,deletions,swaps";
        for (const std::uint32_t edits : {2, 4, 6, 8}) {
            std::mt19937 random(1);
            std::vector<std::string> queries;
            for (std::size_t q = 0; q < count; ++q)
                queries.push_back(
                    with_edits(work.titles[work.fitting[random() % work.fitting.size()]], edits, kind, random));
            const Found found = search(work, queries, edits, pool);
            const double edited = edits / static_cast<double>(query_length);
            const auto n = static_cast<double>(count);
            table.row("cpu", "one round", "titles", work.titles.size(), count, query_length, edited, name, 1U,
                      candidates, share_right(found.one_round, found.truth), static_cast<double>(found.proved) / n,
                      1e3 * found.one_round_s / n);
            table.row("cpu", "certified", "titles", work.titles.size(), count, query_length, edited, name, 1U, "-",
                      share_right(found.certified, found.truth), 1.0, 1e3 * found.certified_s / n);
        }
    }
}

}  // namespace pgwarp::bench::genie
