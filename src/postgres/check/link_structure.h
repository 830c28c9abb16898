// Checks the stored links between rows (ArrayRole::links and others).
#pragma once

#include "postgres/storage/array_stream.h"

namespace pgwarp
{

// A fault of the links, and the block in which it was found.
struct LinkFault {
    const char* what;  // description of the fault; null: none
    BlockNumber block;
};

// Checks that every seed and every neighbour is a row, that no row is its own neighbour and that no neighbour occurs
// twice. With a bitmap of dead rows also that every other row can be reached from the first seed, unless the links need
// more than maintenance_work_mem. An index without such arrays has no fault. ReadResult::recycled: the index changed to
// another generation meanwhile.
ReadResult find_link_fault(Relation index, const Directory& directory, const uint64* dead, LinkFault* fault);

}  // namespace pgwarp
