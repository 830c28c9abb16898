// The aliases' options, and the meaning of their operator classes.
#include "postgres/am/aliases.h"

#include <cstdio>

#include "methods/comparisons.h"
#include "postgres/am/index_columns.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

// Names, ranges and defaults are pgvector's.
constexpr ValueDescription hnsw_options[] = {
    {.name = "m", .help = "Max number of connections", .default_value = 16, .minimum = 2, .maximum = 100},
    {.name = "ef_construction",
     .help = "Size of the dynamic candidate list for construction",
     .default_value = 64,
     .minimum = 4,
     .maximum = 1000},
};
constexpr ValueDescription ivfflat_options[] = {
    {.name = "lists", .help = "Number of inverted lists", .default_value = 100, .minimum = 1, .maximum = 32768},
};

OptionFault check_hnsw_options(const ParameterList& given)
{
    OptionFault fault;
    if (given.get("ef_construction", 0) < 2 * given.get("m", 0)) {
        snprintf(fault.message, sizeof(fault.message), "ef_construction must be greater than or equal to 2 * m");
    }
    return fault;
}

OptionFault accept_options(const ParameterList&)
{
    return {};
}

// In the order of MethodAlias.
constexpr Alias aliases[] = {
    {MethodAlias::hnsw, "hnsw", hnsw_options, 3, nullptr, check_hnsw_options},
    {MethodAlias::ivfflat, "ivfflat", ivfflat_options, 5, "ivfflat index created with little data", accept_options},
};

const AliasService* find_service(const Alias& alias, const MethodDescription& method, ElementType element)
{
    for (const AliasService& service : method.aliases) {
        if (service.alias == alias.number && service.elements.has(element)) return &service;
    }
    return nullptr;
}

// Support function 1 of pgvector's operator classes, by its C name. The inner product is also that of classes by the
// cosine distance, which have a norm as function 2.
struct ClassFunction {
    const char* name;
    ElementType element;
    Metric metric;
};
constexpr ClassFunction class_functions[] = {
    {"vector_l2_squared_distance", ElementType::float32, Metric::l2},
    {"vector_negative_inner_product", ElementType::float32, Metric::inner_product},
    {"l1_distance", ElementType::float32, Metric::l1},
    {"halfvec_l2_squared_distance", ElementType::float16, Metric::l2},
    {"halfvec_negative_inner_product", ElementType::float16, Metric::inner_product},
    {"halfvec_l1_distance", ElementType::float16, Metric::l1},
    {"sparsevec_l2_squared_distance", ElementType::sparse, Metric::l2},
    {"sparsevec_negative_inner_product", ElementType::sparse, Metric::inner_product},
    {"sparsevec_l1_distance", ElementType::sparse, Metric::l1},
    {"hamming_distance", ElementType::bit, Metric::hamming},
    {"jaccard_distance", ElementType::bit, Metric::jaccard},
};

// pgvector's script names the functions as pgvector does, this library's with a prefix.
constexpr char own_prefix[] = "pgwarp_";

const ClassFunction* find_class_function(Oid function)
{
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return nullptr;
    bool null = false;
    const Datum source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &null);
    char* full_name = nullptr;
    if (!null) full_name = TextDatumGetCString(source);
    ReleaseSysCache(tuple);
    if (full_name == nullptr) return nullptr;
    const bool prefixed = strncmp(full_name, own_prefix, strlen(own_prefix)) == 0;
    const char* name = prefixed ? full_name + strlen(own_prefix) : full_name;
    const ClassFunction* found = nullptr;
    for (const ClassFunction& known : class_functions) {
        if (strcmp(known.name, name) == 0) found = &known;
    }
    pfree(full_name);
    return found;
}

}  // namespace

const Alias& alias_of(MethodAlias number)
{
    return aliases[static_cast<size_t>(number)];
}

const MethodDescription* serving_method(const Alias& alias, ElementType element, Metric metric)
{
    for (const MethodDescription* method : method_descriptions()) {
        if (find_service(alias, *method, element) != nullptr && compares(*method, element, metric)) return method;
    }
    return nullptr;
}

const MethodDescription& serving_method(const Alias& alias, Relation index)
{
    ElementType element = ElementType::float32;
    Metric metric = Metric::l2;
    read_class_kind(index, &element, &metric);
    const MethodDescription* found = serving_method(alias, element, metric);
    if (found != nullptr) return *found;
    ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                    errmsg("%s index \"%s\" cannot compare values by its operator class", alias.name,
                           RelationGetRelationName(index))));
}

ParameterList options_of_method(const Alias& alias, const MethodDescription& method, ElementType element,
                                const ParameterList& given)
{
    ParameterList options;
    for (const ValueDescription& option : method.options) options.set(option.name, option.default_value);
    const AliasService* service = find_service(alias, method, element);
    if (service != nullptr && service->map_options != nullptr) service->map_options(given, &options);
    return options;
}

bool find_class_kind(Oid distance, bool has_norm, ElementType* element, Metric* metric)
{
    const ClassFunction* found = OidIsValid(distance) ? find_class_function(distance) : nullptr;
    if (found == nullptr) return false;
    *element = found->element;
    *metric = found->metric == Metric::inner_product && has_norm ? Metric::cosine : found->metric;
    return true;
}

void read_class_kind(Relation index, ElementType* element, Metric* metric)
{
    constexpr uint16 norm_support = 2;
    const Oid distance = index_getprocid(index, 1, metric_support);
    const bool has_norm = OidIsValid(index_getprocid(index, 1, norm_support));
    if (find_class_kind(distance, has_norm, element, metric)) return;
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
             errmsg("index \"%s\" has an operator class that is none of pgvector's", RelationGetRelationName(index))));
}

const char* effort_of_alias(const Alias& alias, Relation index)
{
    ElementType element = ElementType::float32;
    Metric metric = Metric::l2;
    read_class_kind(index, &element, &metric);
    const MethodDescription* method = serving_method(alias, element, metric);
    const AliasService* service = method != nullptr ? find_service(alias, *method, element) : nullptr;
    return service != nullptr ? service->effort : nullptr;
}

}  // namespace pgwarp
