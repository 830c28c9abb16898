// ambuildempty: writes the init fork of an UNLOGGED index, an index without rows.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

void pgwarp_ambuildempty(Relation index);

}  // namespace pgwarp
