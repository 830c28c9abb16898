// Whether the links between rows that an index stores make sense (ArrayRole::links and others).
#pragma once

#include "postgres/storage/array_stream.h"

namespace pgwarp
{

struct LinkFault {
    const char* what;  // null: nothing is wrong
    BlockNumber block;
};

// Every seed and every neighbour is a row; no row is its own neighbour, or has another one twice. With a bitmap of dead
// rows also: every other row can be reached from the first seed; unless the links are more than maintenance_work_mem
// holds. Nothing is wrong with an index that has no such arrays. Recycled: it changed to another generation meanwhile.
ReadResult find_link_fault(Relation index, const Directory& directory, const uint64* dead, LinkFault* fault);

}  // namespace pgwarp
