// Access methods that benchmarks choose by their descriptions.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "methods/description.h"

namespace pgwarp::bench
{

inline const MethodDescription& method_named(const std::string& name)
{
    const MethodDescription* description = find_description(name.c_str());
    if (description == nullptr) throw std::runtime_error("unknown access method " + name);
    return *description;
}

// The methods that index vectors, in the order of the registry.
inline std::vector<const MethodDescription*> vector_methods()
{
    std::vector<const MethodDescription*> methods;
    for (const MethodDescription* description : method_descriptions()) {
        if (takes_elements(*description, ElementType::float32)) methods.push_back(description);
    }
    return methods;
}

// The first method that may miss rows, and the first that links them.
inline const MethodDescription& approximate_method()
{
    for (const MethodDescription* description : method_descriptions()) {
        if (!is_complete(*description)) return *description;
    }
    throw std::runtime_error("no method is approximate");
}

inline const MethodDescription& linking_method()
{
    for (const MethodDescription* description : method_descriptions()) {
        if (description->links_rows) return *description;
    }
    throw std::runtime_error("no method links rows");
}

// The first method that misses none.
inline const MethodDescription& complete_method()
{
    return *complete_description(ElementType::float32);
}

}  // namespace pgwarp::bench
