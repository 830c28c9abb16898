// From exceptions to the error that the sender of a request gets. Errors cross threads as plain structs, not as
// exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "protocol/messages.h"

namespace pgwarp
{

// The memory budget is full of mirrors that are in use.
struct OutOfMemory : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// One index alone takes more memory than the budget.
struct IndexTooLarge : OutOfMemory {
    using OutOfMemory::OutOfMemory;
};

// The build's session is gone, or the engine was restarted.
struct UnknownBuild : std::runtime_error {
    UnknownBuild() : std::runtime_error("no such build: its session is gone, or the engine was restarted") {}
};

// The mirror is gone: the loader begins again.
struct UnknownMirror : std::runtime_error {
    using std::runtime_error::runtime_error;
};

ErrorReply make_error(ErrorCode code, const char* message, const char* hint = "");

// Inside a catch block: the current exception as an error reply. Logs unexpected exceptions.
ErrorReply describe_exception();

}  // namespace pgwarp
