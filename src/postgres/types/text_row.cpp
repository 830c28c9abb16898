// Packs text, and compares packed text.
#include "postgres/types/text_row.h"

#include "numeric/edit_distance.h"
#include "postgres/types/text_value.h"

namespace pgwarp
{

RowView one_list_row(const uint32* words, uint32 count)
{
    auto* offsets = static_cast<uint64*>(palloc(sizeof(uint64) * 2));
    offsets[0] = 0;
    offsets[1] = count;
    RowView row;
    row.count = 1;
    row.offsets = offsets;
    row.words = words;
    return row;
}

RowView read_text_row(Datum value)
{
    const TextValue text = read_text(value);
    uint32 count = 0;
    const uint32* words = pack_text_value(text, &count);
    free_text(text);
    return one_list_row(words, count);
}

double text_row_distance(const RowView& row, Datum value)
{
    const TextView pattern = view_text(row.list(0));
    const TextValue text = read_text(value);
    auto* memory = static_cast<uint64*>(palloc(sizeof(uint64) * EditPattern::memory_words(pattern)));
    const EditPattern prepared(pattern, EditKind::levenshtein, memory);
    const uint32 distance = prepared.distance(text.characters);
    pfree(memory);
    free_text(text);
    return distance;
}

}  // namespace pgwarp
