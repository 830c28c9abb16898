// Finds the access methods by their callbacks, and makes these callbacks.
#include "postgres/am/methods.h"

namespace pgwarp
{

namespace
{

template <Method method>
bytea* parse_options(Datum options, bool validate)
{
    return parse_method_options(access_method(method), options, validate);
}

template <Method method>
void estimate_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost, Cost* total_cost,
                   Selectivity* selectivity, double* correlation, double* pages)
{
    estimate_method_cost(access_method(method), root, path, loop_count, startup_cost, total_cost, selectivity,
                         correlation, pages);
}

// In the order of method_descriptions().
#define PGWARP_CALLBACKS(name, number, on_device) {parse_options<Method::name>, estimate_cost<Method::name>},
#define PGWARP_COUNT_METHOD(name, number, on_device) +1
MethodCallbacks callbacks[most_added_descriptions PGWARP_METHODS(PGWARP_COUNT_METHOD)] = {
    PGWARP_METHODS(PGWARP_CALLBACKS)};
#undef PGWARP_COUNT_METHOD
#undef PGWARP_CALLBACKS

[[noreturn]] void refuse_unknown_method(Method method)
{
    elog(ERROR, "unknown access method %d", static_cast<int>(method));
}

}  // namespace

const MethodCallbacks& callbacks_of(Method method)
{
    for (size_t i = 0; i < method_descriptions().size(); ++i) {
        if (method_descriptions()[i]->method == method) return callbacks[i];
    }
    refuse_unknown_method(method);
}

void add_access_method(const MethodDescription& description, const MethodCallbacks& added)
{
    Assert(method_descriptions().size() < lengthof(callbacks));
    callbacks[method_descriptions().size()] = added;
    add_description(description);
}

const MethodDescription& access_method(Method method)
{
    const MethodDescription* found = find_description(method);
    if (found == nullptr) refuse_unknown_method(method);
    return *found;
}

ResultPromise result_promise(const IndexShape& shape, const ParameterList& options)
{
    return access_method(shape.method).result_promise(options, shape.element, static_cast<Metric>(shape.metric));
}

const MethodDescription* find_access_method(amoptions_function parse_options)
{
    const auto descriptions = method_descriptions();
    for (size_t i = 0; i < descriptions.size(); ++i) {
        if (callbacks[i].parse_options == parse_options) return descriptions[i];
    }
    return nullptr;
}

// The planner has copied the routine's fields, so the method is found by its cost function, which is its own.
const MethodDescription* find_access_method(const IndexOptInfo* index)
{
    for (size_t i = 0; i < method_descriptions().size(); ++i) {
        if (reinterpret_cast<void*>(callbacks[i].estimate_cost) == reinterpret_cast<void*>(index->amcostestimate)) {
            return method_descriptions()[i];
        }
    }
    return nullptr;
}

void refuse_other_relation(const char* name)
{
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a pgwarp index", name),
                    errhint("Name an index of one of pgwarp's access methods, not the table.")));
}

const MethodDescription& access_method_of(Relation index)
{
    const char* name = RelationGetRelationName(index);
    const MethodDescription* found =
        index->rd_indam != nullptr ? find_access_method(index->rd_indam->amoptions) : nullptr;
    if (found == nullptr) refuse_other_relation(name);
    if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX) {
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is a partitioned index", name),
                        errhint("Name the index of a partition.")));
    }
    return *found;
}

}  // namespace pgwarp
