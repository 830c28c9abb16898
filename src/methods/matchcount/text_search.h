// The search of one text among those of an index (GENIE, section 6.1). Every answer is exact; counts of shared grams
// only tell which comparisons can be left out.
//
// A text within distance tau of a query Q has a length L within tau of |Q| (where the distance is to the nearest
// substring, at least |Q| - tau), and shares at least
// QueryBounds::least_shared() keywords with it (theorem 6.1). The search first compares the texts within a small
// distance, because few share so many keywords. Where fewer than k are that near, the texts that share most keywords
// are candidates, and their k-th distance is tau. A text that is no candidate shares no more keywords than the last
// candidate: where that is less than the bound, the answer is proved (theorem 6.2). Otherwise all texts within tau are
// compared, nearest lengths first, and tau falls with the k-th distance; counts of characters leave some out. A query
// that is for the texts within a distance begins with that tau: then one comparison of a small tau is complete, and
// where the texts of the query's rarest keywords are few, these alone are compared.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/matchcount/character_counts.h"
#include "methods/matchcount/grams.h"
#include "methods/matchcount/match_count.h"
#include "methods/matchcount/texts_by_length.h"
#include "methods/method.h"
#include "numeric/edit_distance.h"

namespace pgwarp::matchcount
{

// The mirror of an index of texts. A row of the lists is a place in the order of lengths.
struct TextIndex {
    GramForm form;
    TextsByLength texts;
    CharacterCounts characters;
    KeywordLists lists;

    std::uint64_t memory_bytes() const
    {
        return texts.memory_bytes() + characters.memory_bytes() + lists.memory_bytes();
    }
};

TextIndex make_text_index(TextsByLength texts, const GramForm& form, ThreadPool& pool);

struct TextQuery {
    TextView text;
    std::uint32_t k = 0;
    RowBitmap dead;                         // places
    RowResult after = {-1, 0};              // results up to this one, in order of (distance, row), are left out
    EditKind kind = EditKind::levenshtein;  // the query is the pattern
    std::uint32_t within = no_edit_limit;   // texts that are farther are left out
    std::uint32_t least_candidates = 500;
    bool one_round = false;  // candidates will do, unless `within` or `after` is given
    const CancelToken* cancel = nullptr;
};

// How an answer was found, for tests and benchmarks.
struct SearchPath {
    bool candidates = false;     // few texts were within a small distance
    bool proved = false;         // the counts of candidates proved the answer
    std::uint64_t compared = 0;  // texts
};

// Returns the k nearest live rows behind `after` and within `within`, by (distance, row). Throws Cancelled.
std::vector<RowResult> search_texts(const TextIndex& index, const TextQuery& query, CountWorkspace& workspace,
                                    ThreadPool& pool, SearchPath* path = nullptr);

}  // namespace pgwarp::matchcount
