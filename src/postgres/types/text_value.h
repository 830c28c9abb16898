// A text datum as characters: code points of the database's encoding, of which the engine knows nothing.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/text_rows.h"

namespace pgwarp
{

// A detoasted text. Its characters are in the text's own bytes where each character is a byte, otherwise in palloc'ed
// memory, decoded.
struct TextValue {
    TextView characters;
    void* copy;     // detoasted, palloc'ed copy to free, or null
    void* decoded;  // palloc'ed characters to free, or null
};

// Reads a text; its view points to the datum or to memory in the current memory context. Raises 54000 for more than
// max_text_characters characters.
TextValue read_text(Datum value);
// Whether read_text() accepts the text.
bool can_read_text(Datum value);
void free_text(const TextValue& text);

// Packs the characters as a row of an index (protocol/text_rows.h): palloc'ed words, whose number goes to `count`.
uint32* pack_text_value(const TextValue& text, uint32* count);

}  // namespace pgwarp
