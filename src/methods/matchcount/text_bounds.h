// Lower bounds of the edit distances of one query to texts, by lengths, by shared grams and by counts of characters,
// for each kind of edits.
//
// A text at distance e of a query Q with |Q| characters shares at least this number of grams with it:
// - Levenshtein: max(|Q|, L) + n - 1 - n e, padded grams (theorem 6.1); an edit changes at most n grams.
// - with transpositions: a swap of neighbours changes at most n + 1.
// - nearest substring: |Q| - n + 1 - n e of Q's grams without marks, which have to be in the substring.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "methods/matchcount/character_counts.h"
#include "methods/matchcount/grams.h"
#include "numeric/edit_distance.h"

namespace pgwarp::matchcount
{

class QueryBounds
{
public:
    QueryBounds(const TextView& query, EditKind kind, const GramForm& form)
        : length_(query.length), kind_(kind), form_(form)
    {
        if (length_ <= CharacterCounts::most_characters) characters_ = CharacterCounts::of(query);
    }

    // Appends the query's keywords that texts are counted by.
    void append_keywords(const TextView& query, std::vector<std::uint32_t>& keywords) const
    {
        if (kind_ == EditKind::substring) {
            append_inner_grams(query, form_, keywords);
        } else {
            append_grams(query, form_, keywords);
        }
    }

    // Whether a longer text is at least as far as its length differs.
    bool bounds_longer() const { return kind_ != EditKind::substring; }
    // The least distance of a text of this length.
    std::uint32_t gap(std::uint32_t length) const
    {
        if (length < length_) return length_ - length;
        return bounds_longer() ? length - length_ : 0;
    }
    // The least number of keywords that a text of this length shares within a distance. Zero or less: no bound. Grows
    // with the length.
    std::int64_t least_shared(std::uint32_t length, std::uint32_t edits) const
    {
        switch (kind_) {
            case EditKind::levenshtein:
                return least_shared_grams(length_, length, form_, edits);
            case EditKind::transpositions:
                return std::int64_t{std::max(length_, length)} + form_.n - 1 - std::int64_t{form_.n + 1} * edits;
            case EditKind::substring:
                return std::int64_t{length_} - form_.n + 1 - std::int64_t{form_.n} * edits;
        }
        return 0;
    }
    // A distance for which a text has to share a third of the query's keywords.
    std::uint32_t small_distance() const
    {
        const std::uint32_t changed = form_.n + (kind_ == EditKind::transpositions ? 1 : 0);
        const std::uint32_t lost = kind_ == EditKind::substring ? std::min(length_, form_.n - 1) : 0;
        return 2 * (length_ - lost) / (3 * changed);
    }
    // Whether counts of characters bound the distance of a text of this length.
    bool counts_bound(std::uint32_t length) const
    {
        return std::max(length_, length) <= CharacterCounts::most_characters;
    }
    std::uint32_t least_distance(const CharacterCounts::Counts& text, std::uint32_t length) const
    {
        if (kind_ == EditKind::substring) return CharacterCounts::missing(characters_, text);
        return CharacterCounts::least_distance(characters_, length_, text, length);
    }

private:
    std::uint32_t length_;
    EditKind kind_;
    GramForm form_;
    CharacterCounts::Counts characters_{};
};

}  // namespace pgwarp::matchcount
