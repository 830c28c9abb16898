// A set of heap addresses in a temporary file: a bitmap, with the pages used last in memory.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

struct TidFile;

// Offsets of tids are at most this; no page of a heap has more.
extern const uint16 tid_file_offsets;

// An empty set. The file belongs to `owner`; memory, about `bytes`, is taken from the current context.
TidFile* create_tid_file(ResourceOwner owner, Size bytes);
void close_tid_file(TidFile* file);

// Adds a tid; false when the set had it already.
bool add_to_tid_file(TidFile* file, Tid tid);
bool tid_file_has(TidFile* file, Tid tid);

}  // namespace pgwarp
