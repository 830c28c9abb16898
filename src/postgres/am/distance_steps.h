// Expressions around a distance that never fall, or never rise, as it rises: `1 - (v <=> q)`, `round(10 * (v <-> q))`.
//
// Each step inwards is over a function of one argument, and constants, that keeps or reverses its argument's order.
// Rounding keeps it too: a larger exact result never rounds to a smaller number. So values may become equal, but none
// overtakes another. A step takes NULL to NULL and NaN to NaN.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace pgwarp
{

enum class Direction : uint8 { none, kept, reversed };

// A step inwards.
struct DistanceStep {
    Node* argument;  // that the distance is in; null where there is no step
    List* place;     // list of arguments that it is in
    Direction direction;
    bool never_fails;  // no distance makes the function raise an error
};

DistanceStep step_inwards(const Node* expression);

}  // namespace pgwarp
