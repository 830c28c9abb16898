// Settings (GUCs) of a session that belong to one access method (SettingDescription). Their names begin with pgwarp.
#pragma once

#include "postgres/postgres_headers.h"

#include "methods/description.h"

extern "C" {
#include "utils/rel.h"
}

namespace pgwarp
{

// Defines the settings of all methods. Called by define_settings().
void define_method_settings();

// Adds the session's settings for searches of rows of this element by the method, but those at their defaults. True
// when one of them overrides the effort that the calibration chooses.
bool add_method_settings(const MethodDescription& method, ElementType element, ParameterList* settings);

// The values of a method's settings in the session. While they stay the same, so do the lists made of them.
struct SettingsImage {
    static constexpr size_t most = 8;  // settings of a method
    int values[most];
    bool operator==(const SettingsImage& other) const = default;
};
SettingsImage image_of_settings(const MethodDescription& method);

// The same settings as a list of their own.
ParameterList method_settings(const MethodDescription& method, ElementType element);

// The effort that a setting of the index's alias (aliases.h) asks for; 0 where it is of no alias or the setting was not
// set. Its parameter in the settings of a search goes to `parameter`.
int64 alias_effort(Relation index, const char** parameter);

// The settings for searches of an index: those of its method, and of the alias that it belongs to, whose
// effort goes before the method's.
bool add_index_settings(Relation index, ElementType element, ParameterList* settings);
ParameterList index_settings(Relation index, ElementType element);

}  // namespace pgwarp
