// Aliases: access methods under pgvector's names, options and operator classes, whose indexes are those of a method of
// this library. A method tells in its description which aliases it serves. The extension `vector` (src/shim) creates
// the aliases in SQL.
#pragma once

#include "postgres/postgres_headers.h"

#include "methods/description.h"

namespace pgwarp
{

struct Alias {
    MethodAlias number;
    const char* name;
    std::span<const ValueDescription> options;
    uint16 support_functions;  // of an operator class, at most
    const char* few_rows;      // message of a build of fewer rows than the option spread_option asks for, or null
    OptionFault (*check_options)(const ParameterList& given);
};

const Alias& alias_of(MethodAlias number);

// The method that serves the alias for rows of this element, compared by this metric; null when none does.
const MethodDescription* serving_method(const Alias& alias, ElementType element, Metric metric);
// The same for the rows of an index. Raises an error when none does.
const MethodDescription& serving_method(const Alias& alias, Relation index);
// The options of the method for those that the alias was given.
ParameterList options_of_method(const Alias& alias, const MethodDescription& method, ElementType element,
                                const ParameterList& given);

// The element type and the metric of an operator class of pgvector, by the C name of its support function 1, a
// distance, and by whether it has function 2, a norm. False where pgvector has no such class.
bool find_class_kind(Oid distance, bool has_norm, ElementType* element, Metric* metric);
// The same of the index of an alias. Raises an error where there is none.
void read_class_kind(Relation index, ElementType* element, Metric* metric);

// The search parameter that the alias's setting of an effort sets for the index; null where it says nothing to the
// method.
const char* effort_of_alias(const Alias& alias, Relation index);

}  // namespace pgwarp
