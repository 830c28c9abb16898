// Checks rows that are texts, sets or attributes: their offsets, and each list by itself.
#pragma once

#include "postgres/check/check.h"

namespace pgwarp
{

// Raises ERRCODE_INDEX_CORRUPTED unless the offsets of such an index lie within its words and the words of each row,
// also a dead one, are valid. Other indexes pass. False when the index was changed meanwhile.
bool check_lists(const IndexCheck& check);

}  // namespace pgwarp
