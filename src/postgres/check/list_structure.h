// Checks rows that are texts: their offsets, and each text by itself.
#pragma once

#include "postgres/check/check.h"

namespace pgwarp
{

// Raises ERRCODE_INDEX_CORRUPTED unless the offsets of an index of text lie within its words and each row, also a dead
// one, is a text. Other indexes pass. False when the index was changed meanwhile.
bool check_texts(const IndexCheck& check);

}  // namespace pgwarp
