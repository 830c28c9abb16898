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
    estimate_search_cost(root, path, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
}

template <MethodAlias alias>
bytea* parse_options_of_alias(Datum options, bool validate)
{
    return parse_alias_options(alias, options, validate);
}

template <MethodAlias alias>
void estimate_cost_of_alias(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost, Cost* total_cost,
                            Selectivity* selectivity, double* correlation, double* pages)
{
    estimate_search_cost(root, path, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
}

// In the order of method_descriptions().
#define PGWARP_CALLBACKS(name, number, on_device) {parse_options<Method::name>, estimate_cost<Method::name>},
#define PGWARP_COUNT_METHOD(name, number, on_device) +1
MethodCallbacks callbacks[most_added_descriptions PGWARP_METHODS(PGWARP_COUNT_METHOD)] = {
    PGWARP_METHODS(PGWARP_CALLBACKS)};
#undef PGWARP_COUNT_METHOD
#undef PGWARP_CALLBACKS

// In the order of MethodAlias.
constexpr MethodCallbacks alias_callbacks[] = {
    {parse_options_of_alias<MethodAlias::hnsw>, estimate_cost_of_alias<MethodAlias::hnsw>},
    {parse_options_of_alias<MethodAlias::ivfflat>, estimate_cost_of_alias<MethodAlias::ivfflat>},
};

// A method that serves the alias.
const MethodDescription* usual_method(MethodAlias alias)
{
    for (const MethodDescription* method : method_descriptions()) {
        for (const AliasService& service : method->aliases) {
            if (service.alias == alias) return method;
        }
    }
    return nullptr;
}

template <typename Callback>
const MethodDescription* find_by_callback(Callback MethodCallbacks::*member, Callback callback)
{
    const auto descriptions = method_descriptions();
    for (size_t i = 0; i < descriptions.size(); ++i) {
        if (callbacks[i].*member == callback) return descriptions[i];
    }
    for (size_t i = 0; i < lengthof(alias_callbacks); ++i) {
        if (alias_callbacks[i].*member == callback) return usual_method(static_cast<MethodAlias>(i));
    }
    return nullptr;
}

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

const MethodCallbacks& callbacks_of(MethodAlias alias)
{
    return alias_callbacks[static_cast<size_t>(alias)];
}

const Alias* find_alias(amoptions_function parse_options)
{
    for (size_t i = 0; i < lengthof(alias_callbacks); ++i) {
        if (alias_callbacks[i].parse_options == parse_options) return &alias_of(static_cast<MethodAlias>(i));
    }
    return nullptr;
}

const Alias* find_alias(Relation index)
{
    return index->rd_indam != nullptr ? find_alias(index->rd_indam->amoptions) : nullptr;
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
    return find_by_callback(&MethodCallbacks::parse_options, parse_options);
}

// The planner has copied the routine's fields, so the method is found by its cost function, which is its own.
const MethodDescription* find_access_method(const IndexOptInfo* index)
{
    return find_by_callback(&MethodCallbacks::estimate_cost,
                            reinterpret_cast<amcostestimate_function>(index->amcostestimate));
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
    const Alias* alias = find_alias(index);
    return alias != nullptr ? serving_method(*alias, index) : *found;
}

const char* access_method_name(Relation index)
{
    const Alias* alias = find_alias(index);
    return alias != nullptr ? alias->name : access_method_of(index).name;
}

}  // namespace pgwarp
