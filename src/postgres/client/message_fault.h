// Places in exchanges with the engine where a build for tests kills the engine or the session. In other builds the
// calls do nothing.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Marks a place between two steps of an exchange about a message of this type. Calls are counted: at the
// pgwarp.fault_message-th call of this session the engine is killed, or with pgwarp.fault_session the session.
void message_fault_point(const char* where, uint16 message_type);
// Marks the begin of this session's turn to repeat a request. At the pgwarp.fault_turn-th one the engine is killed.
void turn_fault_point();

// Defines these settings in a build for tests. Called by _PG_init, before the prefix is reserved.
void define_message_fault_settings();

}  // namespace pgwarp
