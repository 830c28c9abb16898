// Decodes text.
#include "postgres/types/text_value.h"

extern "C" {
#include "access/detoast.h"
#include "mb/pg_wchar.h"
}

namespace pgwarp
{

namespace
{

// All encodings of databases have ASCII's characters in bytes without the highest bit, and no others.
bool is_ascii(const char* bytes, Size count)
{
    unsigned char all = 0;
    for (Size i = 0; i < count; ++i) all |= static_cast<unsigned char>(bytes[i]);
    return all < 0x80;
}

void check_text_length(Size length)
{
    if (length <= max_text_characters) return;
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("text of %zu characters is too long for edit distances", length),
                    errdetail("It may have %u.", max_text_characters),
                    errhint("Compare its beginning, as in left(t, 1000); an index may be on that expression.")));
}

}  // namespace

TextValue read_text(Datum value)
{
    const auto* stored = reinterpret_cast<const varlena*>(DatumGetPointer(value));
    auto* detoasted = pg_detoast_datum_packed(const_cast<varlena*>(stored));
    const char* bytes = VARDATA_ANY(detoasted);
    const Size count = VARSIZE_ANY_EXHDR(detoasted);
    TextValue text = {};
    text.copy = detoasted == stored ? nullptr : detoasted;
    if (pg_database_encoding_max_length() == 1 || is_ascii(bytes, count)) {
        check_text_length(count);
        text.characters = {static_cast<uint32>(count), 1, bytes};
        return text;
    }
    if (count > max_text_characters) check_text_length(pg_mbstrlen_with_len(bytes, static_cast<int>(count)));
    auto* characters = static_cast<pg_wchar*>(palloc(sizeof(pg_wchar) * (count + 1)));
    text.decoded = characters;
    const int length = pg_mb2wchar_with_len(bytes, characters, static_cast<int>(count));
    text.characters = {static_cast<uint32>(length), sizeof(pg_wchar), characters};
    return text;
}

bool can_read_text(Datum value)
{
    // Most texts have fewer bytes than that, which their headers tell.
    if (toast_raw_datum_size(value) - VARHDRSZ <= max_text_characters) return true;
    auto* stored = reinterpret_cast<varlena*>(DatumGetPointer(value));
    auto* detoasted = pg_detoast_datum_packed(stored);
    const int length = pg_mbstrlen_with_len(VARDATA_ANY(detoasted), static_cast<int>(VARSIZE_ANY_EXHDR(detoasted)));
    if (detoasted != stored) pfree(detoasted);
    return length <= static_cast<int>(max_text_characters);
}

void free_text(const TextValue& text)
{
    if (text.decoded != nullptr) pfree(text.decoded);
    if (text.copy != nullptr) pfree(text.copy);
}

uint32* pack_text_value(const TextValue& text, uint32* count)
{
    const TextView& view = text.characters;
    if (view.bytes_each == 1) {
        *count = text_words(view.length, 1);
        auto* words = static_cast<uint32*>(palloc(sizeof(uint32) * *count));
        words[*count - 1] = 0;
        words[0] = view.length;
        memcpy(words + 1, view.characters, view.length);
        return words;
    }
    const std::span<const uint32> characters(static_cast<const uint32*>(view.characters), view.length);
    *count = text_words(view.length, text_width(characters));
    auto* words = static_cast<uint32*>(palloc(sizeof(uint32) * *count));
    pack_text(characters, words);
    return words;
}

}  // namespace pgwarp
