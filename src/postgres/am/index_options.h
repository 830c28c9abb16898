// Options and shape of an index, as CREATE INDEX gave them.
#pragma once

#include "postgres/am/methods.h"

namespace pgwarp
{

// The metric that the operator class of the index stands for.
Metric index_metric(Relation index);

// Method, element type, metric and dimensions. Raises an error when the column has no fixed dimensions.
IndexShape index_shape(Relation index);

// Options for the engine. Raises an error when they make no sense for the index.
ParameterList index_build_options(Relation index);

// The option `recall` of an index; 0 where it has none.
double index_recall(Relation index);

// The recall that searches of an index aim at: pgwarp.recall where it is set, else the index's own option, else
// usual_recall. ALTER INDEX changes the option for plans that exist already, so it is read with every search.
double recall_asked(Relation index);
inline constexpr double usual_recall = 0.95;

// Options as they were given, unchecked: for the planner.
ParameterList index_stored_options(const MethodDescription& method, Relation index);

}  // namespace pgwarp
