// The element types of SQL types and of indexes, found through the operator classes of the types.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/types/list_value.h"

namespace pgwarp
{

// Support functions of an operator class: number 1 returns its metric, number 2 the element type of its SQL type.
inline constexpr uint16 metric_support = 1;
inline constexpr uint16 element_support = 2;

// Finds the element type of a SQL type, or of a domain over it. False when the type is no vector type.
bool find_element_type(Oid type, ElementType* element);

// The element type of the index's key column, which may be one of lists. Raises an error when it has none.
ElementType index_element_type(Relation index);

// The type of an index's key, by which values become rows and queries.
struct KeyType {
    ElementType element;
    const ListType* list;  // null for vectors
};
// Raises an error where the key's SQL type has no rows of its element type.
KeyType index_key_type(Relation index);

}  // namespace pgwarp
