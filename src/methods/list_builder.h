// The builder of methods that store rows of lists unchanged: searchers make what they need from them, so pages hold no
// posting lists. Its searches miss nothing.
#pragma once

#include <memory>

#include "methods/method.h"

namespace pgwarp
{

// Stores lists in the arrays of methods/rows/stored_lists.h.
std::unique_ptr<Builder> make_list_builder(const ParameterList& effective_options);

}  // namespace pgwarp
