// Places where a build for tests (PGWARP_FAULTS) ends a process, so that the server recovers as from a crash. In other
// builds nothing happens there.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Between two changes of pages. Counts; the pgwarp.fault_step-th call of this session kills its process.
void fault_point(const char* where);

// Between two steps of a conversation with the engine, about a message of this type. Counted by themselves; at the
// pgwarp.fault_message-th call of this session the engine is killed, or with pgwarp.fault_session the session.
void message_fault_point(const char* where, uint16 message_type);

// Where shared memory is attached: with pgwarp.fault_shared_memory there is none left.
void fault_shared_memory();

// Defines these settings in a build for tests.
void define_fault_settings();

}  // namespace pgwarp
