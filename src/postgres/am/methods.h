// The access methods as PostgreSQL sees them: the description of an index's method, and the callbacks that differ
// between methods.
#pragma once

#include "postgres/postgres_headers.h"

#include "methods/description.h"
#include "postgres/am/aliases.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Each method and each alias has callbacks of its own: they tell which one an index belongs to, where the server passes
// an access method's routine, or only what the planner has copied from it.
struct MethodCallbacks {
    amoptions_function parse_options;
    amcostestimate_function estimate_cost;
};
const MethodCallbacks& callbacks_of(Method method);
const MethodCallbacks& callbacks_of(MethodAlias alias);
// Adds an access method that a build for tests brings along.
void add_access_method(const MethodDescription& description, const MethodCallbacks& callbacks);
// The routine that a method's handler returns (handler.cpp).
IndexAmRoutine* make_routine(Method method);
// Returns a handler's result. Up to 18 the server copies and frees it; from 19 on it keeps the pointer, so each handler
// makes one.
#if PG_VERSION_NUM >= 190000
#define PGWARP_RETURN_ROUTINE(made)                                         \
    do {                                                                    \
        static IndexAmRoutine* kept = nullptr;                              \
        if (kept == nullptr) {                                              \
            MemoryContext before = MemoryContextSwitchTo(TopMemoryContext); \
            kept = (made);                                                  \
            MemoryContextSwitchTo(before);                                  \
        }                                                                   \
        PG_RETURN_POINTER(kept);                                            \
    } while (false)
#else
#define PGWARP_RETURN_ROUTINE(made) PG_RETURN_POINTER(made)
#endif
// The bodies of these callbacks (index_options.cpp, cost.cpp).
bytea* parse_method_options(const MethodDescription& method, Datum options, bool validate);
bytea* parse_alias_options(MethodAlias alias, Datum options, bool validate);
void estimate_search_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost, Cost* total_cost,
                          Selectivity* selectivity, double* correlation, double* pages);

// The description of a method. Raises an error when this library does not have it.
const MethodDescription& access_method(Method method);
// The access method of an index; of an alias (aliases.h) the one that serves it for the index's rows. Raises an error
// when the index is partitioned or of another access method.
const MethodDescription& access_method_of(Relation index);
// The kind of the results of searches of an index with this shape and these options (ResultPromise).
ResultPromise result_promise(const IndexShape& shape, const ParameterList& options);
// Raises the error for a relation that is not a pgwarp index.
[[noreturn]] void refuse_other_relation(const char* name);
// Null when the access method is no alias.
const Alias* find_alias(amoptions_function parse_options);
const Alias* find_alias(Relation index);
// The name of the access method of an index in SQL.
const char* access_method_name(Relation index);
// nullptr when the access method does not belong to this library. Of an alias: one of the methods that serve it.
const MethodDescription* find_access_method(amoptions_function parse_options);
const MethodDescription* find_access_method(const IndexOptInfo* index);

}  // namespace pgwarp
