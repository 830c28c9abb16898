// The access methods as PostgreSQL has them: the description of an index's method, and the callbacks that each method
// has of its own.
#pragma once

#include "postgres/postgres_headers.h"

#include "methods/description.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// PostgreSQL passes these two no index.
struct MethodCallbacks {
    amoptions_function parse_options;
    amcostestimate_function estimate_cost;
};
const MethodCallbacks& callbacks_of(Method method);
// What they call, with the method: index_options.cpp, cost.cpp.
bytea* parse_method_options(const MethodDescription& method, Datum options, bool validate);
void estimate_method_cost(const MethodDescription& method, PlannerInfo* root, IndexPath* path, double loop_count,
                          Cost* startup_cost, Cost* total_cost, Selectivity* selectivity, double* correlation,
                          double* pages);

const MethodDescription& access_method(Method method);
// The access method of an index; an error where the index is partitioned or of another access method.
const MethodDescription& access_method_of(Relation index);
// What results of an index of this shape and these options are.
ResultPromise result_promise(const IndexShape& shape, const ParameterList& options);
// Raises the error for a relation that is not a pgwarp index.
[[noreturn]] void refuse_other_relation(const char* name);
// nullptr when the access method is not one of ours.
const MethodDescription* find_access_method(amoptions_function parse_options);
const MethodDescription* find_access_method(const IndexOptInfo* index);

}  // namespace pgwarp
