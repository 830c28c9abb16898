// Running as the owner of a table. Expressions and predicates of an index are code of that owner, so that code must not
// run with the rights of another user who calls a function of this library.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// The user to return to.
struct OwnerScope {
    bool entered;  // false where the user was the owner already, restricted as below
    Oid user;
    int context;
    int guc_level;
};

// Switches to the owner, as VACUUM and amcheck do: in a security-restricted operation, with settings that end with it.
// After an error the end of the (sub)transaction restores the user and the settings.
OwnerScope enter_owner(Oid owner);
void leave_owner(const OwnerScope& scope);

}  // namespace pgwarp
