// Rows go to pgwarp-engine as they are inserted, where somebody searches their index: the next search need not bring
// them first.
#pragma once

#include "postgres/storage/delta_log.h"

namespace pgwarp
{

// Sends the row that was just appended, unless the engine lacks others before it or the transaction has inserted many.
// `stored`: its value as appended. Waits for nothing and raises no error of the engine's: searches still tell what it
// lacks.
void send_inserted_row(Relation index, const MetaPage& meta, const DeltaPlace& place, ItemPointer tid,
                       const char* stored);

}  // namespace pgwarp
