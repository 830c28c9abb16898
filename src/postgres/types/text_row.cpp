// Packs text, and compares packed text.
#include "postgres/types/text_row.h"

#include "numeric/edit_distance.h"

extern "C" {
#include "fmgr.h"
#include "mb/pg_wchar.h"
}

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
    const text* stored = DatumGetTextPP(value);
    const auto bytes = static_cast<int>(VARSIZE_ANY_EXHDR(stored));
    auto* characters = static_cast<pg_wchar*>(palloc(sizeof(pg_wchar) * (static_cast<Size>(bytes) + 1)));
    const int length = pg_mb2wchar_with_len(VARDATA_ANY(stored), characters, bytes);
    if (length > static_cast<int>(max_text_characters)) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("text of %d characters is too long, the most is %u", length, max_text_characters),
                        errhint("Index an expression: the beginning of the text, or a part of it.")));
    }
    const std::span<const uint32> all(characters, static_cast<size_t>(length));
    const uint32 count = text_words(static_cast<uint32>(length), text_width(all));
    auto* words = static_cast<uint32*>(palloc(sizeof(uint32) * count));
    pack_text(all, words);
    pfree(characters);
    return one_list_row(words, count);
}

double text_row_distance(const RowView& a, const RowView& b)
{
    const TextView pattern = view_text(a.list(0));
    auto* memory = static_cast<uint64*>(palloc(sizeof(uint64) * EditPattern::memory_words(pattern)));
    const EditPattern prepared(pattern, EditKind::levenshtein, memory);
    const uint32 distance = prepared.distance(view_text(b.list(0)));
    pfree(memory);
    return distance;
}

}  // namespace pgwarp
