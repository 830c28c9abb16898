// ambulkdelete and amvacuumcleanup: mark dead rows by tombstones, then merge.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

IndexBulkDeleteResult* pgwarp_ambulkdelete(IndexVacuumInfo* info, IndexBulkDeleteResult* stats,
                                           IndexBulkDeleteCallback callback, void* callback_state);
IndexBulkDeleteResult* pgwarp_amvacuumcleanup(IndexVacuumInfo* info, IndexBulkDeleteResult* stats);

}  // namespace pgwarp
