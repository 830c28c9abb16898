// A set of heap addresses as a bitmap in a temporary file. Recently used pages are cached in memory.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

struct TidFile;

// The largest offset of a tid in the set; no heap page has larger ones.
extern const uint16 tid_file_offsets;

// An empty set. The file belongs to `owner`; the cache, of about `bytes`, to the current memory context.
TidFile* create_tid_file(ResourceOwner owner, Size bytes);
void close_tid_file(TidFile* file);

// Adds a tid; false when the set has it already.
bool add_to_tid_file(TidFile* file, Tid tid);
bool tid_file_has(TidFile* file, Tid tid);

}  // namespace pgwarp
