// Tuning: finds the settings with which a method reaches a target recall.
#pragma once

#include <map>
#include <optional>

#include "clients.h"

namespace pgwarp::bench
{

// A method at certain settings.
struct Point {
    const Method* method;
    double target;  // 0 = none
    Settings settings;
    double recall;
    bool forced;  // the planner had to be told to use the index
};

// The points to measure of a method: for each target the fastest settings that reach it on these queries (none, with a
// message, when no setting does), and the method's own choice for the target where it takes one.
std::vector<Point> tune(const Options& options, const Dataset& data, const Method& method);

}  // namespace pgwarp::bench
