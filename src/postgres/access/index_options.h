// Options and shape of an index, as CREATE INDEX gave them.
#pragma once

#include "postgres/access/methods.h"

namespace pgwarp
{

// The amoptions callback of `method`.
bytea* parse_method_options(const AccessMethod& method, Datum options, bool validate);

// The metric that the operator class of the index stands for.
Metric index_metric(Relation index);

// Method, element type, metric and dimensions. Raises an error when the column has no fixed dimensions.
IndexShape index_shape(Relation index);

// Options for the engine. Raises an error when they make no sense for the index.
ParameterList index_build_options(Relation index);

// The same from an already opened relcache entry, unchecked: for the planner.
ParameterList index_stored_options(const AccessMethod& method, Relation index);

}  // namespace pgwarp
