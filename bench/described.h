// Access methods that benchmarks choose by their descriptions.
#pragma once

#include <sstream>
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

// An index to build: a method, and options other than its defaults.
struct IndexChoice {
    std::string text;  // "METHOD[,NAME=NUMBER...]"
    const MethodDescription* method = nullptr;
    ParameterList options;

    explicit IndexChoice(const std::string& text_) : text(text_)
    {
        std::stringstream stream(text);
        std::string item;
        std::getline(stream, item, ',');
        method = &method_named(item);
        while (std::getline(stream, item, ',')) {
            const std::size_t equals = item.find('=');
            if (equals == std::string::npos) throw std::runtime_error("an option is NAME=NUMBER: " + item);
            options.set(item.substr(0, equals).c_str(), std::stoll(item.substr(equals + 1)));
        }
    }
};

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
