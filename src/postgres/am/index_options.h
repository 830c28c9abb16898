// Options and shape of an index, as CREATE INDEX gave them.
#pragma once

#include "postgres/am/methods.h"

namespace pgwarp
{

// The metric that the operator class of the index stands for.
Metric index_metric(Relation index);

// Method, element type, metric and dimensions. Raises an error when the column has no fixed dimensions.
IndexShape index_shape(Relation index);

// The build options for the engine. Raises an error when they are invalid for the index's shape.
ParameterList index_build_options(Relation index, const IndexShape& shape);
// Raises the same error for options that the index is about to have, in the form of pg_class.reloptions.
void check_index_options(Relation index, Datum options);

// Whether normal searches of the index miss no row, and return rows in the order of continuations.
bool is_complete(Relation index);
// The same for searches with these settings: some end early (SettingDescription::ends_early), and a bound of the
// distance makes them complete again.
bool is_complete(Relation index, const ParameterList& settings);
// The same for an index whose method and element the caller knows: a scan asks for each row of a join.
bool is_complete(const MethodDescription& method, ElementType element, const ParameterList& settings);
// Whether any settings make complete searches end early: otherwise MethodDescription::complete tells of all, without a
// copy of settings.
bool may_end_early(const MethodDescription& method, ElementType element);
// Whether searches of the index take a bound of the distance.
bool takes_bound(Relation index);

// The option `recall` of an index; 0 when it was not given.
double index_recall(Relation index);

// The target recall of searches of an index: pgwarp.recall if it is set, else the index's own option, else
// usual_recall. ALTER INDEX changes the option also for existing plans, so each search reads it again.
double recall_asked(Relation index);
inline constexpr double usual_recall = 0.95;

// The options as they were given, unchecked: for the planner, which must not raise errors.
ParameterList index_stored_options(const MethodDescription& method, Relation index);

}  // namespace pgwarp
