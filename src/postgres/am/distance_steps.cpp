#include "postgres/am/distance_steps.h"

#include <cmath>

extern "C" {
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

constexpr DistanceStep no_step = {nullptr, NIL, Direction::none, false};
// Distances are far from the limits of a float, and sums and products with numbers up to this one stay so.
constexpr double largest_safe = 1e100;

// Reads a constant by which a distance may be shifted or scaled: a finite number but zero. Users write `+ 0` to keep an
// index from being used.
bool read_number(const Node* node, double* number)
{
    if (!IsA(node, Const)) return false;
    const auto* constant = reinterpret_cast<const Const*>(node);
    if (constant->consttype != FLOAT8OID || constant->constisnull) return false;
    *number = DatumGetFloat8(constant->constvalue);
    return std::isfinite(*number) && *number != 0;
}

Direction direction_of(bool rises)
{
    return rises ? Direction::kept : Direction::reversed;
}

// Products with small numbers may underflow, which raises an error.
bool is_safe_factor(double number)
{
    return std::fabs(number) >= 1 && std::fabs(number) <= largest_safe;
}

DistanceStep step_of_arithmetic(Oid function, List* arguments)
{
    auto* left = static_cast<Node*>(linitial(arguments));
    auto* right = static_cast<Node*>(lsecond(arguments));
    double number = 0;
    const bool constant_left = read_number(left, &number);
    if (!constant_left && !read_number(right, &number)) return no_step;
    Node* argument = constant_left ? right : left;
    switch (function) {
        case F_FLOAT8PL:
            return {argument, arguments, Direction::kept, std::fabs(number) <= largest_safe};
        case F_FLOAT8MI:
            return {argument, arguments, direction_of(!constant_left), std::fabs(number) <= largest_safe};
        case F_FLOAT8MUL:
            return {argument, arguments, direction_of(number > 0), is_safe_factor(number)};
        case F_FLOAT8DIV:
            return constant_left ? no_step : DistanceStep{argument, arguments, direction_of(number > 0), false};
        default:
            return no_step;
    }
}

// Also casts and rounding, to a fixed number of digits.
DistanceStep step_of_function(Oid function, List* arguments)
{
    auto* first = arguments != NIL ? static_cast<Node*>(linitial(arguments)) : nullptr;
    if (list_length(arguments) == 2) {
        const bool rounds = function == F_ROUND_NUMERIC_INT4 && IsA(lsecond(arguments), Const);
        return rounds ? DistanceStep{first, arguments, Direction::kept, false}
                      : step_of_arithmetic(function, arguments);
    }
    if (list_length(arguments) != 1) return no_step;
    switch (function) {
        case F_FLOAT8UM:
            return {first, arguments, Direction::reversed, true};
        case F_FLOAT8UP:
            return {first, arguments, Direction::kept, true};
        case F_FLOAT4_FLOAT8:
        case F_NUMERIC_FLOAT8:
        case F_ROUND_FLOAT8:
            return {first, arguments, Direction::kept, false};
        default:
            return no_step;
    }
}

}  // namespace

DistanceStep step_inwards(const Node* expression)
{
    if (IsA(expression, OpExpr)) {
        const auto* operation = reinterpret_cast<const OpExpr*>(expression);
        const Oid function = OidIsValid(operation->opfuncid) ? operation->opfuncid : get_opcode(operation->opno);
        return step_of_function(function, operation->args);
    }
    if (!IsA(expression, FuncExpr)) return no_step;
    const auto* call = reinterpret_cast<const FuncExpr*>(expression);
    return step_of_function(call->funcid, call->args);
}

}  // namespace pgwarp
