// Runs code as the owner of a table. Expressions and predicates of an index are code of that owner, so that code must
// not run with the rights of another user who calls a function of this library.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// The user, security context and settings to return to.
struct OwnerScope {
    bool entered;  // false when the user was the owner already, in a security-restricted operation
    Oid user;
    int context;
    int guc_level;
};

// Switches to the owner as VACUUM and amcheck do: in a security-restricted operation, and with a nest level of settings
// that ends with it. After an error the end of the (sub)transaction restores the user and the settings.
OwnerScope enter_owner(Oid owner);
// Returns to the user of the scope. Does nothing when the scope was not entered.
void leave_owner(const OwnerScope& scope);

}  // namespace pgwarp
