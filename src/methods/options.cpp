// Ranges of options, from the description of a method.
#include "methods/options.h"

#include <string>

#include "methods/method.h"

namespace pgwarp
{

namespace
{

// The largest value of an option; the smallest one is its minimum or first choice.
std::int64_t largest_value(const ValueDescription& option)
{
    switch (option.kind) {
        case ValueKind::integer:
        case ValueKind::millionths:
            return option.maximum;
        case ValueKind::boolean:
            return 1;
        case ValueKind::choice:
            break;
    }
    std::int64_t value = option.first_choice - 1;
    for (const char* const* choice = option.choices; *choice != nullptr; ++choice) ++value;
    return value;
}

}  // namespace

void require_options(const MethodDescription& method, const ParameterList& options, const IndexShape& column)
{
    for (const ValueDescription& option : method.options) {
        const std::int64_t value = options.get(option.name, option.default_value);
        const std::int64_t least = option.kind == ValueKind::choice ? option.first_choice : option.minimum;
        const std::int64_t most = largest_value(option);
        if (value < least || value > most) {
            throw BadRequest(std::string(option.name) + " must be between " + std::to_string(least) + " and " +
                             std::to_string(most));
        }
    }
    if (const OptionFault fault = method.check_options(options, column)) throw BadRequest(fault.message);
}

}  // namespace pgwarp
