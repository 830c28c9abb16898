// ambulkdelete and amvacuumcleanup: mark dead rows by tombstones, then merge.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Marks the entries for which the callback returns true, and adds the counts to stats (palloc'ed when null).
IndexBulkDeleteResult* pgwarp_ambulkdelete(IndexVacuumInfo* info, IndexBulkDeleteResult* stats,
                                           IndexBulkDeleteCallback callback, void* callback_state);
// Merges the index if needed. Returns stats with the index's pages and rows (palloc'ed when null).
IndexBulkDeleteResult* pgwarp_amvacuumcleanup(IndexVacuumInfo* info, IndexBulkDeleteResult* stats);

}  // namespace pgwarp
