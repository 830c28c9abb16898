// Opening an index for functions that only its owner may call.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "storage/lockdefs.h"
}

namespace pgwarp
{

// Opens a pgwarp index under this lock. Raises an error for other relations and for users who do not own the index.
Relation open_owned_index(Oid oid, LOCKMODE lock);

}  // namespace pgwarp
