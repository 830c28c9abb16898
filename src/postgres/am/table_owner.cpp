// Switches users with PostgreSQL's own functions.
#include "postgres/am/table_owner.h"

namespace pgwarp
{

OwnerScope enter_owner(Oid owner)
{
    OwnerScope scope = {};
    GetUserIdAndSecContext(&scope.user, &scope.context);
    if (scope.user == owner && (scope.context & SECURITY_RESTRICTED_OPERATION) != 0) return scope;
    scope.entered = true;
    SetUserIdAndSecContext(owner, scope.context | SECURITY_RESTRICTED_OPERATION);
    scope.guc_level = NewGUCNestLevel();
#if PG_VERSION_NUM >= 170000
    RestrictSearchPath();
#endif
    return scope;
}

void leave_owner(const OwnerScope& scope)
{
    if (!scope.entered) return;
    AtEOXact_GUC(false, scope.guc_level);
    SetUserIdAndSecContext(scope.user, scope.context);
}

}  // namespace pgwarp
