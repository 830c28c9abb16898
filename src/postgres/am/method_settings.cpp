// Defines the methods' settings with PostgreSQL, and reads their variables.
#include "postgres/am/method_settings.h"

#include <utility>

#include "postgres/am/alias_settings.h"
#include "postgres/am/methods.h"

extern "C" {
#include "utils/guc.h"
#include "utils/memutils.h"
}

namespace pgwarp
{

namespace
{

constexpr size_t most_settings = SettingsImage::most;
#define PGWARP_COUNT_METHOD(name, number, on_device) +1
constexpr size_t slot_count = most_settings * (0 PGWARP_METHODS(PGWARP_COUNT_METHOD));
#undef PGWARP_COUNT_METHOD

// The variable of a setting. Each setting of each method has a slot of its own.
union Variable {
    int number;  // also of choices
    bool flag;
};
Variable variables[slot_count];

const SettingDescription& setting_of(size_t slot)
{
    return method_descriptions()[slot / most_settings]->settings[slot % most_settings];
}

// PostgreSQL does not tell a check hook the variable that it checks, so each slot has a hook of its own.
template <size_t slot>
bool check_value(int* value, void**, GucSource)
{
    const SettingDescription& setting = setting_of(slot);
    if (setting.accepts(*value)) return true;
    GUC_check_errdetail("%s", setting.refusal);
    return false;
}

template <size_t... slots>
GucIntCheckHook check_hook_of(size_t slot, std::index_sequence<slots...>)
{
    static constexpr GucIntCheckHook hooks[] = {check_value<slots>...};
    return hooks[slot];
}

// The choices as PostgreSQL needs them, allocated for the life of the process.
const config_enum_entry* make_entries(const ValueDescription& value)
{
    size_t count = 0;
    while (value.choices[count] != nullptr) ++count;
    auto* entries = static_cast<config_enum_entry*>(
        MemoryContextAllocZero(TopMemoryContext, sizeof(config_enum_entry) * (count + 1)));
    for (size_t i = 0; i < count; ++i) {
        entries[i] = {value.choices[i], value.first_choice + static_cast<int>(i), false};
    }
    return entries;
}

void define_setting(size_t slot)
{
    const SettingDescription& setting = setting_of(slot);
    const ValueDescription& value = setting.value;
    char* name = psprintf("pgwarp.%s", value.name);
    if (value.kind == ValueKind::boolean) {
        variables[slot].flag = value.default_value != 0;
    } else {
        variables[slot].number = value.default_value;
    }
    switch (value.kind) {
        case ValueKind::integer:
            DefineCustomIntVariable(
                name, value.help, setting.detail, &variables[slot].number, value.default_value, value.minimum,
                value.maximum, PGC_USERSET, 0,
                setting.accepts != nullptr ? check_hook_of(slot, std::make_index_sequence<slot_count>()) : nullptr,
                nullptr, nullptr);
            break;
        case ValueKind::boolean:
            DefineCustomBoolVariable(name, value.help, setting.detail, &variables[slot].flag, value.default_value != 0,
                                     PGC_USERSET, 0, nullptr, nullptr, nullptr);
            break;
        case ValueKind::choice:
            DefineCustomEnumVariable(name, value.help, setting.detail, &variables[slot].number, value.default_value,
                                     make_entries(value), PGC_USERSET, 0, nullptr, nullptr, nullptr);
            break;
        case ValueKind::millionths:
            Assert(false);  // options alone
            break;
    }
    pfree(name);
}

// Whether a setting has its default value. Requests carry only the other values.
bool is_default(const ValueDescription& value, const Variable& variable)
{
    if (value.kind == ValueKind::boolean) return variable.flag == (value.default_value != 0);
    return variable.number == value.default_value;
}

size_t first_slot(const MethodDescription& method)
{
    const auto descriptions = method_descriptions();
    size_t place = 0;
    while (descriptions[place] != &method) ++place;
    return place * most_settings;
}

}  // namespace

void define_method_settings()
{
    for (const MethodDescription* method : method_descriptions()) {
        Assert(method->settings.size() <= most_settings);
        for (size_t i = 0; i < method->settings.size(); ++i) define_setting(first_slot(*method) + i);
    }
}

bool add_method_settings(const MethodDescription& method, ElementType element, ParameterList* settings)
{
    bool overrides = false;
    const Variable* own = variables + first_slot(method);
    for (size_t i = 0; i < method.settings.size(); ++i) {
        const SettingDescription& setting = method.settings[i];
        const Variable& variable = own[i];
        if (is_default(setting.value, variable) || !setting.elements.has(element)) continue;
        settings->set(setting.parameter, setting.value.kind == ValueKind::boolean ? 1 : variable.number);
        overrides = overrides || setting.overrides_calibration;
    }
    return overrides;
}

SettingsImage image_of_settings(const MethodDescription& method)
{
    SettingsImage image;
    static_assert(sizeof(image) == sizeof(Variable) * most_settings);
    memcpy(&image, variables + first_slot(method), sizeof(image));
    return image;
}

ParameterList method_settings(const MethodDescription& method, ElementType element)
{
    ParameterList settings;
    add_method_settings(method, element, &settings);
    return settings;
}

int64 alias_effort(Relation index, const char** parameter)
{
    static void** place = nullptr;
    if (place == nullptr) place = find_rendezvous_variable(alias_settings_variable);
    const Alias* alias = *place != nullptr ? find_alias(index) : nullptr;
    if (alias == nullptr) return 0;
    const auto* settings = static_cast<const AliasSettings*>(*place);
    const int64 effort = alias->number == MethodAlias::hnsw ? settings->ef_search : settings->probes;
    if (effort != 0) *parameter = effort_of_alias(*alias, index);
    return effort != 0 && *parameter != nullptr ? effort : 0;
}

bool add_index_settings(Relation index, ElementType element, ParameterList* settings)
{
    const bool overrides = add_method_settings(access_method_of(index), element, settings);
    const char* parameter = nullptr;
    const int64 effort = alias_effort(index, &parameter);
    if (effort != 0) settings->set(parameter, effort);
    return overrides || effort != 0;
}

ParameterList index_settings(Relation index, ElementType element)
{
    ParameterList settings;
    add_index_settings(index, element, &settings);
    return settings;
}

}  // namespace pgwarp
