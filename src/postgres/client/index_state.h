#pragma once

#include "postgres/client/loader.h"

namespace pgwarp
{

// A copy as one chunk of memory.
Directory* copy_directory(const Directory& directory, MemoryContext context);

}  // namespace pgwarp
