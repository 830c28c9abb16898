// Opening an index for functions that only its owner may call.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "storage/lockdefs.h"
}

namespace pgwarp
{

// Opens one of our indexes; only its owner gets past.
Relation open_owned_index(Oid oid, LOCKMODE lock);

}  // namespace pgwarp
