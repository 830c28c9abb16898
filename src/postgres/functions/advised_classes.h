// The operator classes by which access methods of this library could index a type.
#pragma once

#include "postgres/postgres_headers.h"

#include "methods/description.h"

extern "C" {
#include "nodes/pg_list.h"
}

namespace pgwarp
{

struct AdvisedClass {
    const MethodDescription* method;
    const char* name;           // quoted, and with its schema where the search path does not lead to it
    const char* operator_name;  // that rows are ordered by
    ElementType element;
    Metric metric;
    bool is_default;  // of the type and the method
};

// Returns AdvisedClass pointers in the order of descriptions. With an operator's name those whose rows are ordered by
// it; otherwise the default of each method, or all classes of a type that has no default.
List* find_advised_classes(Oid type, const char* operator_name);
// Returns the operators of all classes of the type, each once, as a list to read; null where the type has no class.
const char* list_advised_operators(Oid type);

}  // namespace pgwarp
