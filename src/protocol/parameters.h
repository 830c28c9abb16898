// Named integers: options of an index and settings of a search, in one form for backend, pages and engine, so that
// shared code does not depend on a method. A POD list of fixed size, so that it can live in backends, pages and
// messages.
#pragma once

#include <cstdint>
#include <cstring>

namespace pgwarp
{

// One named integer.
struct Parameter {
    char name[24];  // zero-terminated, padded with zeros
    std::int64_t value;
};

// A list in order of insertion, without duplicate names.
struct ParameterList {
    static constexpr std::uint32_t capacity = 16;
    std::uint32_t count = 0;
    std::uint32_t reserved = 0;
    Parameter items[capacity] = {};

    // Adds or replaces; false when the list is full or the name too long.
    bool set(const char* name, std::int64_t value)
    {
        if (std::strlen(name) >= sizeof(Parameter::name)) return false;
        for (std::uint32_t i = 0; i < count; ++i) {
            if (std::strncmp(items[i].name, name, sizeof(Parameter::name)) == 0) {
                items[i].value = value;
                return true;
            }
        }
        if (count == capacity) return false;
        std::strncpy(items[count].name, name, sizeof(Parameter::name) - 1);
        items[count++].value = value;
        return true;
    }
    // Returns the value of a name, or `fallback` if it is absent.
    std::int64_t get(const char* name, std::int64_t fallback) const
    {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (std::strncmp(items[i].name, name, sizeof(Parameter::name)) == 0) return items[i].value;
        }
        return fallback;
    }
};

}  // namespace pgwarp
