// Which SQL types are vectors, and of which elements: as the operator classes of their indexes say.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"

namespace pgwarp
{

// The support functions of an operator class: 1 says its metric, 2 the elements of its type.
inline constexpr uint16 metric_support = 1;
inline constexpr uint16 element_support = 2;

// The elements of a SQL type, or of a domain over it. False when it is none of the vector types.
bool find_element_type(Oid type, ElementType* element);

// The same for the column of an index; an error where it is none.
ElementType index_element_type(Relation index);

}  // namespace pgwarp
