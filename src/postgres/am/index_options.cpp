// Registers, parses and checks the options of the methods' indexes.
#include "postgres/am/index_options.h"

#include <cmath>

#include "methods/comparisons.h"
#include "numeric/bits.h"
#include "postgres/am/callbacks.h"
#include "postgres/am/element_type.h"
#include "postgres/am/option_hints.h"
#include "postgres/settings.h"
#include "postgres/types/any_vector.h"
#include "protocol/search_bound.h"

extern "C" {
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

constexpr size_t most_options = 8;  // of a method, at most
constexpr double millionths = 1e6;

// The layout of rd_options: one slot for each option, in the order of the method's description.
struct StoredOptions {
    int32 length;  // varlena header
    int32 values[most_options];
    double recall;                   // 0 = not given; only methods that may miss rows have it
    double fractions[most_options];  // the slots of options in millionths
};

constexpr const char* recall_option = "recall";

// The options of an access method in SQL: a method's, or an alias's.
struct OptionSet {
    std::span<const ValueDescription> options;
    bool has_recall;    // beside these
    relopt_kind* kind;  // 0 = not registered yet
};

OptionSet options_of(const MethodDescription& method)
{
    static relopt_kind kinds[16];  // by Method
    return {method.options, !is_complete(method), &kinds[static_cast<int>(method.method)]};
}

OptionSet options_of(const Alias& alias)
{
    static relopt_kind kinds[4];  // by MethodAlias
    return {alias.options, false, &kinds[static_cast<int>(alias.number)]};
}

// The choices of an option as PostgreSQL needs them, allocated for the life of the process.
relopt_enum_elt_def* make_choices(const ValueDescription& option)
{
    int count = 0;
    while (option.choices[count] != nullptr) ++count;
    auto* members = static_cast<relopt_enum_elt_def*>(
        MemoryContextAllocZero(TopMemoryContext, sizeof(relopt_enum_elt_def) * (count + 1)));
    for (int i = 0; i < count; ++i) {
        members[i].string_val = option.choices[i];
        members[i].symbol_val = option.first_choice + i;
    }
    return members;
}

// The error text 'Valid values are "pq", "half" and "int8".', allocated for the life of the process.
const char* list_choices(const ValueDescription& option)
{
    StringInfoData text;
    MemoryContext outer = MemoryContextSwitchTo(TopMemoryContext);
    initStringInfo(&text);
    MemoryContextSwitchTo(outer);
    appendStringInfoString(&text, "Valid values are ");
    for (int i = 0; option.choices[i] != nullptr; ++i) {
        const char* separator = option.choices[i + 1] != nullptr ? ", " : " and ";
        appendStringInfo(&text, "%s\"%s\"", i == 0 ? "" : separator, option.choices[i]);
    }
    appendStringInfoChar(&text, '.');
    return text.data;
}

// Registers the options with PostgreSQL, once in a process.
relopt_kind register_options(const OptionSet& set)
{
    relopt_kind& kind = *set.kind;
    if (kind != 0) return kind;
    kind = add_reloption_kind();
    Assert(set.options.size() <= most_options);
    for (const ValueDescription& option : set.options) {
        switch (option.kind) {
            case ValueKind::integer:
                add_int_reloption(kind, option.name, option.help, option.default_value, option.minimum, option.maximum,
                                  AccessExclusiveLock);
                break;
            case ValueKind::boolean:
                add_bool_reloption(kind, option.name, option.help, option.default_value != 0, AccessExclusiveLock);
                break;
            case ValueKind::millionths:
                add_real_reloption(kind, option.name, option.help, option.default_value / millionths,
                                   option.minimum / millionths, option.maximum / millionths, AccessExclusiveLock);
                break;
            case ValueKind::choice:
                add_enum_reloption(kind, option.name, option.help, make_choices(option), option.default_value,
                                   list_choices(option), AccessExclusiveLock);
                break;
        }
    }
    if (set.has_recall) {
        add_real_reloption(kind, recall_option, "Recall that searches aim at, 0 = 0.95", 0, 0, 1,
                           ShareUpdateExclusiveLock);
    }
    return kind;
}

relopt_type stored_type(ValueKind kind)
{
    switch (kind) {
        case ValueKind::boolean:
            return RELOPT_TYPE_BOOL;
        case ValueKind::choice:
            return RELOPT_TYPE_ENUM;
        case ValueKind::millionths:
            return RELOPT_TYPE_REAL;
        default:
            return RELOPT_TYPE_INT;
    }
}

int64 stored_value(const StoredOptions& stored, size_t number, ValueKind kind)
{
    switch (kind) {
        case ValueKind::boolean:
            // PostgreSQL writes a boolean to the first byte of its slot alone.
            return *reinterpret_cast<const bool*>(&stored.values[number]);
        case ValueKind::millionths:
            return std::llround(stored.fractions[number] * millionths);
        default:
            return stored.values[number];
    }
}

// The stored options, or the defaults when none are stored.
ParameterList list_options(std::span<const ValueDescription> options, const StoredOptions* stored)
{
    ParameterList list;
    for (size_t i = 0; i < options.size(); ++i) {
        const ValueDescription& option = options[i];
        list.set(option.name, stored != nullptr ? stored_value(*stored, i, option.kind) : option.default_value);
    }
    return list;
}

// The options of the method that serves an index.
ParameterList list_options(const MethodDescription& method, Relation index, const StoredOptions* stored)
{
    const Alias* alias = find_alias(index);
    if (alias == nullptr) return list_options(method.options, stored);
    return options_of_method(*alias, method, index_element_type(index), list_options(alias->options, stored));
}

void refuse_fault(const OptionFault& fault)
{
    if (!fault) return;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", fault.message),
                    fault.hint != nullptr ? errhint("%s", fault.hint) : 0));
}

bytea* parse_options(const OptionSet& set, Datum options, bool validate)
{
    const relopt_kind kind = register_options(set);
    relopt_parse_elt table[most_options + 1] = {};
    auto count = static_cast<int>(set.options.size());
    for (size_t i = 0; i < set.options.size(); ++i) {
        table[i].optname = set.options[i].name;
        table[i].opttype = stored_type(set.options[i].kind);
        table[i].offset = static_cast<int>(set.options[i].kind == ValueKind::millionths
                                               ? offsetof(StoredOptions, fractions) + sizeof(double) * i
                                               : offsetof(StoredOptions, values) + sizeof(int32) * i);
    }
    if (set.has_recall) {
        table[count++] = {recall_option, RELOPT_TYPE_REAL, static_cast<int>(offsetof(StoredOptions, recall))};
    }
    return static_cast<bytea*>(build_reloptions(options, validate, kind, sizeof(StoredOptions), table, count));
}

}  // namespace

// Values that are wrong for every column are refused when they are set, not only when the index is built again.
bytea* parse_method_options(const MethodDescription& method, Datum options, bool validate)
{
    if (validate) refuse_option_of_pgvector(method, options);
    bytea* stored = parse_options(options_of(method), options, validate);
    if (!validate) return stored;
    refuse_fault(method.check_options(list_options(method.options, reinterpret_cast<StoredOptions*>(stored)), {}));
    return stored;
}

bytea* parse_alias_options(MethodAlias number, Datum options, bool validate)
{
    const Alias& alias = alias_of(number);
    bytea* stored = parse_options(options_of(alias), options, validate);
    if (!validate) return stored;
    refuse_fault(alias.check_options(list_options(alias.options, reinterpret_cast<StoredOptions*>(stored))));
    return stored;
}

bool is_complete(Relation index)
{
    return access_method_of(index).complete.has(index_element_type(index));
}

bool is_complete(Relation index, const ParameterList& settings)
{
    return is_complete(access_method_of(index), index_element_type(index), settings);
}

bool is_complete(const MethodDescription& method, ElementType element, const ParameterList& settings)
{
    if (!method.complete.has(element)) return false;
    if (method.takes_bound.has(element) && within_of(settings) < no_bound) return true;
    for (const SettingDescription& setting : method.settings) {
        if (setting.ends_early && settings.get(setting.parameter, 0) != 0) return false;
    }
    return true;
}

bool may_end_early(const MethodDescription& method, ElementType element)
{
    if (!method.complete.has(element)) return false;
    for (const SettingDescription& setting : method.settings) {
        if (setting.ends_early && setting.elements.has(element)) return true;
    }
    return false;
}

bool takes_bound(Relation index)
{
    // Bounds are compared with canonical distances.
    return access_method_of(index).takes_bound.has(index_element_type(index)) &&
           index_arithmetic(index) == Arithmetic::canonical;
}

double index_recall(Relation index)
{
    const auto* stored = reinterpret_cast<const StoredOptions*>(index->rd_options);
    return stored == nullptr ? 0 : stored->recall;
}

double recall_asked(Relation index)
{
    if (setting_recall > 0) return setting_recall;
    const double recall = index_recall(index);
    return recall > 0 ? recall : usual_recall;
}

Metric index_metric(Relation index)
{
    if (find_alias(index) != nullptr) {
        ElementType element = ElementType::float32;
        Metric metric = Metric::l2;
        read_class_kind(index, &element, &metric);
        return metric;
    }
    FmgrInfo* support = index_getprocinfo(index, static_cast<AttrNumber>(vector_column(index) + 1), metric_support);
    return static_cast<Metric>(DatumGetInt32(FunctionCall1Coll(support, InvalidOid, Datum{0})));
}

namespace
{

// Check the column of an index of bits: its type is bit, and its length is at most max_bits.
void check_bit_column(const char* access_method, Form_pg_attribute column)
{
    if (getBaseType(column->atttypid) != BITOID) {
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("type not supported for %s index", access_method),
                 errhint("Index an expression with a cast to bit of a fixed length, such as bit(128).")));
    }
    if (column->atttypmod > static_cast<int32>(max_bits)) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("column cannot have more than %u dimensions for %s index", max_bits, access_method)));
    }
}

// Returns the number of dimensions of a vector column as an index's shape counts them.
uint32 column_dimensions(const char* access_method, ElementType element, Form_pg_attribute column)
{
    if (column->atttypmod < 1) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("column does not have dimensions"),
                        errhint("Give the column a fixed number of dimensions, such as %s(128), or index an "
                                "expression with a cast to one.",
                                element_type_name(element))));
    }
    const auto dimensions = static_cast<uint32>(column->atttypmod);
    if (element != ElementType::bit) return dimensions;
    check_bit_column(access_method, column);
    return static_cast<uint32>(words_of_bits(dimensions));
}

// Returns the name of the SQL type of an index's key.
const char* key_type_name(Relation index, ElementType element)
{
    return is_list(element) ? format_type_be(vector_type(index)) : element_type_name(element);
}

// Returns the options that an index of this shape is built with. Raises an error for options that it cannot have.
ParameterList checked_options(Relation index, const IndexShape& shape, const StoredOptions* stored)
{
    const MethodDescription& method = access_method_of(index);
    const ParameterList options = list_options(method, index, stored);
    refuse_fault(method.check_options(options, shape));
    if (stored != nullptr && stored->recall > 0 && method.complete.has(shape.element)) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("recall is no option of an index of type %s", key_type_name(index, shape.element)),
                        errhint("Its answers are exact.")));
    }
    return options;
}

}  // namespace

IndexShape index_shape(Relation index)
{
    check_index_columns(index);
    const ElementType element = index_element_type(index);
    const MethodDescription& method = access_method_of(index);
    IndexShape shape = {};
    shape.method = method.method;
    shape.element = element;
    shape.metric = static_cast<uint8>(index_metric(index));
    shape.attribute_count = static_cast<uint32>(filter_column_count(index));
    if (has_dimensions(element)) {
        shape.dimensions = column_dimensions(access_method_name(index), element,
                                             TupleDescAttr(RelationGetDescr(index), vector_column(index)));
    }
    if (!compares(method, element, index_metric(index))) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                        errmsg("index \"%s\" cannot compare values of type %s by its operator class's metric",
                               RelationGetRelationName(index), key_type_name(index, element))));
    }
    return shape;
}

ParameterList index_stored_options(const MethodDescription& method, Relation index)
{
    return list_options(method, index, reinterpret_cast<const StoredOptions*>(index->rd_options));
}

ParameterList index_build_options(Relation index, const IndexShape& shape)
{
    const auto* stored = reinterpret_cast<const StoredOptions*>(index->rd_options);
    return checked_options(index, shape, stored);
}

void check_index_options(Relation index, Datum options)
{
    auto* stored = index->rd_indam->amoptions(options, true);
    checked_options(index, index_shape(index), reinterpret_cast<StoredOptions*>(stored));
}

}  // namespace pgwarp
