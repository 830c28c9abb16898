// Distances of text by the metric of an index: a pattern, prepared once and compared with many texts. Nothing here
// allocates or throws, because backends call it too.
#pragma once

#include <optional>

#include "numeric/edit_distance.h"
#include "numeric/gram_distance.h"
#include "numeric/metric.h"

namespace pgwarp
{

// Returns the kind of edits of a metric of text; of gram_jaccard none.
constexpr std::optional<EditKind> edit_kind(Metric metric)
{
    switch (metric) {
        case Metric::edit:
            return EditKind::levenshtein;
        case Metric::edit_transpositions:
            return EditKind::transpositions;
        case Metric::edit_substring:
            return EditKind::substring;
        default:
            return std::nullopt;
    }
}

// The same rules as for EditPattern and GramPattern hold for its memory.
class TextPattern
{
public:
    static std::size_t memory_words(Metric metric, const TextView& pattern)
    {
        return edit_kind(metric) ? EditPattern::memory_words(pattern) : GramPattern::memory_words(pattern);
    }
    TextPattern(Metric metric, const TextView& pattern, std::uint64_t* memory)
    {
        if (const std::optional<EditKind> kind = edit_kind(metric)) {
            edits_.emplace(pattern, *kind, memory);
        } else {
            grams_.emplace(pattern, memory);
        }
    }
    double distance(const TextView& text, const EditPoll& poll = {}) const
    {
        return edits_ ? edits_->distance(text, no_edit_limit, poll) : grams_->distance(text);
    }

private:
    std::optional<EditPattern> edits_;
    std::optional<GramPattern> grams_;
};

}  // namespace pgwarp
