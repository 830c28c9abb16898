// The stored array that has a role in an index's method.
#pragma once

#include "methods/description.h"
#include "postgres/storage/directory.h"

namespace pgwarp
{

// Null where the method, or this index, has none.
inline const StoredArray* find_array(const Directory& directory, const MethodDescription& method, ArrayRole role)
{
    const char* name = array_name(method, role);
    return name != nullptr ? find_array(directory, name) : nullptr;
}

}  // namespace pgwarp
