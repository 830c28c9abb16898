#include "postgres/am/index_options.h"

#include "numeric/bits.h"
#include "postgres/am/element_type.h"
#include "postgres/settings.h"
#include "postgres/types/any_vector.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

namespace pgwarp
{

namespace
{

// What rd_options points to: one slot for each option, in the order of the method's table.
struct StoredOptions {
    int32 length;  // varlena header
    int32 values[max_method_options];
    double recall;  // 0 = not given; of methods that leave rows out
};

constexpr const char* recall_option = "recall";

relopt_kind option_kinds[16];  // by Method; 0 = not registered yet

// Turns the choices of an option into the form that PostgreSQL keeps for the process's life.
relopt_enum_elt_def* make_choices(const MethodOption& option)
{
    int count = 0;
    while (option.choices[count] != nullptr) ++count;
    auto* members = static_cast<relopt_enum_elt_def*>(
        MemoryContextAllocZero(TopMemoryContext, sizeof(relopt_enum_elt_def) * (count + 1)));
    for (int i = 0; i < count; ++i) {
        members[i].string_val = option.choices[i];
        members[i].symbol_val = i;
    }
    return members;
}

// Registers the method's options with PostgreSQL, once in a process.
relopt_kind register_options(const AccessMethod& method)
{
    relopt_kind& kind = option_kinds[static_cast<int>(method.method)];
    if (kind != 0) return kind;
    kind = add_reloption_kind();
    for (int i = 0; i < method.option_count; ++i) {
        const MethodOption& option = method.options[i];
        switch (option.kind) {
            case OptionKind::integer:
                add_int_reloption(kind, option.name, option.description, option.default_value, option.minimum,
                                  option.maximum, AccessExclusiveLock);
                break;
            case OptionKind::boolean:
                add_bool_reloption(kind, option.name, option.description, option.default_value != 0,
                                   AccessExclusiveLock);
                break;
            case OptionKind::choice:
                add_enum_reloption(kind, option.name, option.description, make_choices(option), option.default_value,
                                   option.valid_values, AccessExclusiveLock);
                break;
        }
    }
    if (!method.complete) {
        add_real_reloption(kind, recall_option, "Recall that searches aim at, 0 = usual", 0, 0, 1,
                           ShareUpdateExclusiveLock);
    }
    return kind;
}

relopt_type stored_type(OptionKind kind)
{
    switch (kind) {
        case OptionKind::boolean:
            return RELOPT_TYPE_BOOL;
        case OptionKind::choice:
            return RELOPT_TYPE_ENUM;
        default:
            return RELOPT_TYPE_INT;
    }
}

// The options as stored, or their defaults where none are.
ParameterList list_options(const AccessMethod& method, const StoredOptions* stored)
{
    ParameterList list;
    for (int i = 0; i < method.option_count; ++i) {
        const MethodOption& option = method.options[i];
        int64 value = option.default_value;
        if (stored != nullptr) {
            // A boolean takes only the first byte of its slot.
            value = option.kind == OptionKind::boolean ? *reinterpret_cast<const bool*>(&stored->values[i])
                                                       : stored->values[i];
        }
        list.set(option.name, value);
    }
    return list;
}

}  // namespace

bytea* parse_method_options(const AccessMethod& method, Datum options, bool validate)
{
    const relopt_kind kind = register_options(method);
    relopt_parse_elt table[max_method_options + 1] = {};
    int count = method.option_count;
    for (int i = 0; i < method.option_count; ++i) {
        table[i].optname = method.options[i].name;
        table[i].opttype = stored_type(method.options[i].kind);
        table[i].offset = static_cast<int>(offsetof(StoredOptions, values) + sizeof(int32) * i);
    }
    if (!method.complete) {
        table[count++] = {recall_option, RELOPT_TYPE_REAL, static_cast<int>(offsetof(StoredOptions, recall))};
    }
    auto* stored = static_cast<bytea*>(build_reloptions(options, validate, kind, sizeof(StoredOptions), table, count));
    // What is wrong whatever the column is refused when it is set, not when the index is built anew.
    if (validate) method.check_options(list_options(method, reinterpret_cast<StoredOptions*>(stored)), 0);
    return stored;
}

double index_recall(Relation index)
{
    const auto* stored = reinterpret_cast<const StoredOptions*>(index->rd_options);
    return stored == nullptr || access_method_of(index).complete ? 0 : stored->recall;
}

double recall_asked(Relation index)
{
    if (setting_recall > 0) return setting_recall;
    const double recall = index_recall(index);
    return recall > 0 ? recall : usual_recall;
}

Metric index_metric(Relation index)
{
    FmgrInfo* support = index_getprocinfo(index, 1, metric_support);
    return static_cast<Metric>(DatumGetInt32(FunctionCall1Coll(support, InvalidOid, PointerGetDatum(nullptr))));
}

namespace
{

// Rows of bits have one length.
void check_bit_column(const AccessMethod& method, Form_pg_attribute column)
{
    if (getBaseType(column->atttypid) != BITOID) {
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("type not supported for %s index", method.name),
                        errhint("Index an expression with a cast to bit of a fixed length, such as bit(128).")));
    }
    if (column->atttypmod > static_cast<int32>(max_bits)) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("column cannot have more than %u dimensions for %s index", max_bits, method.name)));
    }
}

}  // namespace

IndexShape index_shape(Relation index)
{
    const Form_pg_attribute column = TupleDescAttr(RelationGetDescr(index), 0);
    const ElementType element = index_element_type(index);
    if (column->atttypmod < 1) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("column does not have dimensions"),
                        errhint("Give the column a fixed number of dimensions, such as %s(128), or index an "
                                "expression with a cast to one.",
                                element_type_name(element))));
    }
    const AccessMethod& method = access_method_of(index);
    if (element == ElementType::bit) check_bit_column(method, column);
    IndexShape shape = {};
    shape.method = method.method;
    shape.element = element;
    shape.metric = static_cast<uint8>(index_metric(index));
    shape.dimensions = static_cast<uint32>(column->atttypmod);
    if (element == ElementType::bit) shape.dimensions = static_cast<uint32>(words_of_bits(shape.dimensions));
    if (is_of_bits(index_metric(index)) != (element == ElementType::bit)) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                        errmsg("index \"%s\" cannot compare values of type %s by its operator class's metric",
                               RelationGetRelationName(index), element_type_name(element))));
    }
    return shape;
}

ParameterList index_stored_options(const AccessMethod& method, Relation index)
{
    return list_options(method, reinterpret_cast<const StoredOptions*>(index->rd_options));
}

ParameterList index_build_options(Relation index)
{
    const AccessMethod& method = access_method_of(index);
    const ParameterList options = index_stored_options(method, index);
    const IndexShape shape = index_shape(index);
    method.check_options(options, shape.dimensions);
    if (shape.element == ElementType::bit && options.get("vectors", 0) != 0) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("vectors = full is the only choice for bits"),
                        errhint("They are kept as they are, a bit a dimension.")));
    }
    return options;
}

}  // namespace pgwarp
