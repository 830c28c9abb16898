// The check that the engine makes of options before a method resolves them.
#pragma once

#include "methods/description.h"

namespace pgwarp
{

// Throws BadRequest for an option out of its range, and for options that contradict each other or the column.
void require_options(const MethodDescription& method, const ParameterList& options, const IndexShape& column);

}  // namespace pgwarp
