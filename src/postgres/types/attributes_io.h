// The binary form of types that are stored as attributes are: a byte with its version, and the text form.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "lib/stringinfo.h"
}

namespace pgwarp
{

// Returns the text of a binary form, which a zero ends. Raises 22P03 for one of another version; `type` is the SQL
// type, for errors.
const char* receive_parts_text(StringInfo buffer, const char* type);

}  // namespace pgwarp
