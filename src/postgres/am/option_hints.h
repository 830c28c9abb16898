// Hints for options that an access method of pgvector has under another name.
#pragma once

#include "postgres/am/methods.h"

namespace pgwarp
{

// Raises an error with a hint where `options`, in the form of pg_class.reloptions, has such a name. PostgreSQL refuses
// other unknown names.
void refuse_option_of_pgvector(const MethodDescription& method, Datum options);

}  // namespace pgwarp
