// Opening an index for functions that only its owner may call.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "storage/lockdefs.h"
}

namespace pgwarp
{

// Raises an error where CREATE INDEX CONCURRENTLY has not built the index: its file may have no page yet, which is no
// corruption.
void check_is_built(Relation index);

// Opens a pgwarp index under this lock. Raises an error for other relations, for users who do not own the index, and
// for an index that is not built.
Relation open_owned_index(Oid oid, LOCKMODE lock);

}  // namespace pgwarp
