// Settings of a session that one access method has (SettingDescription), all with the prefix pgwarp.
#pragma once

#include "methods/description.h"

namespace pgwarp
{

// Defines the settings of all methods. Called by define_settings().
void define_method_settings();

// Adds what this session has set for searches of the method. Whether that overrides the calibration.
bool add_method_settings(const MethodDescription& method, ParameterList* settings);

// The same as a list of its own.
ParameterList method_settings(const MethodDescription& method);

}  // namespace pgwarp
