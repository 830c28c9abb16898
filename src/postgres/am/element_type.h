// The element types of SQL types and of indexes, found through the operator classes of the types.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/am/index_columns.h"
#include "postgres/types/list_value.h"

namespace pgwarp
{

// Whether rows of the element have the number of dimensions of the index.
constexpr bool has_dimensions(ElementType element)
{
    return !is_list(element) || element == ElementType::sparse;
}

// Finds the element type of a SQL type, or of a domain over it. False when the type is no vector type.
bool find_element_type(Oid type, ElementType* element);

// The element type of the column that the index orders by, which may be one of lists. Raises an error when it has none.
ElementType index_element_type(Relation index);

// How the operator of an operator class computes distances. Stored nowhere.
enum class Arithmetic : int32 {
    canonical = 0,  // by the canonical routine: the class has no support function for it
    float32 = 1,    // as pgvector does (numeric/float32_distance.h)
};

// The type of that column, by which values become rows and queries.
struct KeyType {
    ElementType element;
    const ListType* list;  // null for vectors
    Arithmetic arithmetic;
};
Arithmetic index_arithmetic(Relation index);
// Raises an error where the key's SQL type has no rows of its element type.
KeyType index_key_type(Relation index);

}  // namespace pgwarp
