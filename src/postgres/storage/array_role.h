// Finds the stored array that has a role in an index's method.
#pragma once

#include "methods/description.h"
#include "postgres/storage/directory.h"

namespace pgwarp
{

// Null when the method has no array of this role, or this index lacks it.
inline const StoredArray* find_array(const Directory& directory, const MethodDescription& method, ArrayRole role)
{
    const char* name = array_name(method, role);
    return name != nullptr ? find_array(directory, name) : nullptr;
}

}  // namespace pgwarp
