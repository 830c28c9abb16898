// The planner's support function of casts that check dimensions: a cast goes where the dimensions are known, so that
// ALTER TABLE neither rewrites nor reads a table whose column changes between types of one layout.
#include "postgres/fmgr_cpp.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
}

namespace pgwarp
{

namespace
{

Oid modifier_input(Oid type)
{
    HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
    if (!HeapTupleIsValid(tuple)) return InvalidOid;
    const Oid function = reinterpret_cast<Form_pg_type>(GETSTRUCT(tuple))->typmodin;
    ReleaseSysCache(tuple);
    return function;
}

// Whether the modifier of a type is its number of dimensions: the type is a vector type of this library or of pgvector,
// as the name of the function tells that reads the modifier.
bool counts_dimensions(Oid type)
{
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(modifier_input(type)));
    if (!HeapTupleIsValid(tuple)) return false;
    const char* name = NameStr(reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->proname);
    const bool counts = strcmp(name, "vector_typmod_in") == 0 || strcmp(name, "halfvec_typmod_in") == 0 ||
                        strcmp(name, "sparsevec_typmod_in") == 0;
    ReleaseSysCache(tuple);
    return counts;
}

// The number of dimensions that every value of an expression has; -1 where it is unknown.
int32 known_dimensions(Node* expression)
{
    const int32 own = exprTypmod(expression);
    if (own >= 0 || !IsA(expression, RelabelType)) return own;
    auto* inner = reinterpret_cast<Node*>(castNode(RelabelType, expression)->arg);
    return counts_dimensions(exprType(inner)) ? known_dimensions(inner) : -1;
}

// The cast's argument in the cast's place; null where the cast is needed.
Node* simplify(const FuncExpr* cast)
{
    if (list_length(cast->args) < 2) return nullptr;
    auto* source = static_cast<Node*>(linitial(cast->args));
    auto* wanted = static_cast<Node*>(lsecond(cast->args));
    if (!IsA(wanted, Const) || castNode(Const, wanted)->constisnull) return nullptr;
    const int32 dimensions = DatumGetInt32(castNode(Const, wanted)->constvalue);
    if (dimensions >= 0 && known_dimensions(source) != dimensions) return nullptr;
    return relabel_to_typmod(source, dimensions);
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_dimension_support)
{
    auto* request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (!IsA(request, SupportRequestSimplify)) PG_RETURN_POINTER(nullptr);
    PG_RETURN_POINTER(pgwarp::simplify(castNode(SupportRequestSimplify, request)->fcall));
}
