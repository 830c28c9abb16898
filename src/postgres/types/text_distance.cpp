// Distances and similarities of text.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/text_value.h"

#include "numeric/edit_distance.h"
#include "numeric/gram_distance.h"
#include "numeric/jaro_winkler.h"
#include "postgres/types/text_row.h"

namespace pgwarp
{

namespace
{

// Memory of a function call: of its frame while that is enough.
template <Size words>
struct CallMemory {
    uint64 frame[words];
    uint64* allocated = nullptr;

    uint64* take(Size count)
    {
        if (count <= words) return frame;
        allocated = static_cast<uint64*>(palloc(sizeof(uint64) * count));
        return allocated;
    }
    void give_back()
    {
        if (allocated != nullptr) pfree(allocated);
    }
};

uint32 distance_of_texts(const TextView& pattern, const TextView& text, EditKind kind, uint32 at_most)
{
    CallMemory<700> memory;  // of a pattern of one block
    const EditPattern prepared(pattern, kind, memory.take(EditPattern::memory_words(pattern)));
    const uint32 distance = prepared.distance(text, at_most, interrupt_poll);
    memory.give_back();
    return distance;
}

// Returns the distance of the first two arguments, or a number above at_most. The first is the pattern,
// unless the second is.
uint32 distance_of_arguments(FunctionCallInfo fcinfo, EditKind kind, bool pattern_second = false,
                             uint32 at_most = no_edit_limit)
{
    const TextValue a = read_text(PG_GETARG_DATUM(pattern_second ? 1 : 0));
    const TextValue b = read_text(PG_GETARG_DATUM(pattern_second ? 0 : 1));
    // A shorter pattern takes fewer steps, and only the distance to a substring depends on the order.
    const bool swapped = kind != EditKind::substring && a.characters.length > b.characters.length;
    const uint32 distance = swapped ? distance_of_texts(b.characters, a.characters, kind, at_most)
                                    : distance_of_texts(a.characters, b.characters, kind, at_most);
    free_text(a);
    free_text(b);
    return distance;
}

}  // namespace

}  // namespace pgwarp

using pgwarp::EditKind;

PGWARP_FUNCTION(pgwarp_edit_distance)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::distance_of_arguments(fcinfo, EditKind::levenshtein)));
}

PGWARP_FUNCTION(pgwarp_edit_distance_at_most)
{
    const int32 at_most = PG_GETARG_INT32(2);
    if (at_most < 0) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("at_most must not be negative")));
    }
    const auto limit = static_cast<uint32>(at_most);
    const uint32 distance = pgwarp::distance_of_arguments(fcinfo, EditKind::levenshtein, false, limit);
    PG_RETURN_INT32(static_cast<int32>(Min(distance, limit + 1)));
}

PGWARP_FUNCTION(pgwarp_edit_distance_transpositions)
{
    PG_RETURN_INT32(static_cast<int32>(pgwarp::distance_of_arguments(fcinfo, EditKind::transpositions)));
}

PGWARP_FUNCTION(pgwarp_text_edit_distance)
{
    PG_RETURN_FLOAT8(pgwarp::distance_of_arguments(fcinfo, EditKind::levenshtein));
}

PGWARP_FUNCTION(pgwarp_substring_edit_distance)
{
    PG_RETURN_FLOAT8(pgwarp::distance_of_arguments(fcinfo, EditKind::substring));
}

PGWARP_FUNCTION(pgwarp_text_edit_distance_transpositions)
{
    PG_RETURN_FLOAT8(pgwarp::distance_of_arguments(fcinfo, EditKind::transpositions));
}

// The text comes first, then the word.
PGWARP_FUNCTION(pgwarp_contained_edit_distance)
{
    PG_RETURN_FLOAT8(pgwarp::distance_of_arguments(fcinfo, EditKind::substring, true));
}

PGWARP_FUNCTION(pgwarp_gram_distance)
{
    const pgwarp::TextValue a = pgwarp::read_text(PG_GETARG_DATUM(0));
    const pgwarp::TextValue b = pgwarp::read_text(PG_GETARG_DATUM(1));
    pgwarp::CallMemory<512> memory;
    const pgwarp::GramPattern pattern(a.characters, memory.take(pgwarp::GramPattern::memory_words(a.characters)));
    const double distance = pattern.distance(b.characters);
    memory.give_back();
    pgwarp::free_text(a);
    pgwarp::free_text(b);
    PG_RETURN_FLOAT8(distance);
}

PGWARP_FUNCTION(pgwarp_jaro_winkler)
{
    const pgwarp::TextValue a = pgwarp::read_text(PG_GETARG_DATUM(0));
    const pgwarp::TextValue b = pgwarp::read_text(PG_GETARG_DATUM(1));
    pgwarp::CallMemory<256> memory;
    const double similarity = pgwarp::jaro_winkler(
        a.characters, b.characters, memory.take(pgwarp::jaro_winkler_memory_words(a.characters, b.characters)));
    memory.give_back();
    pgwarp::free_text(a);
    pgwarp::free_text(b);
    PG_RETURN_FLOAT8(similarity);
}
