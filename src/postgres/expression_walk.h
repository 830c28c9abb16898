// expression_tree_walker() and expression_tree_mutator() with one signature for all supported versions of PostgreSQL.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/nodeFuncs.h"
}

namespace pgwarp
{

// Walker: bool (*)(Node*, void*).
template <class Walker>
bool walk_expression(Node* node, Walker walker, void* context)
{
#if PG_VERSION_NUM >= 160000
    return expression_tree_walker(node, walker, context);
#else
    return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(walker)), context);
#endif
}

// Mutator: Node* (*)(Node*, void*).
template <class Mutator>
Node* mutate_expression(Node* node, Mutator mutator, void* context)
{
#if PG_VERSION_NUM >= 160000
    return expression_tree_mutator(node, mutator, context);
#else
    return expression_tree_mutator(node, reinterpret_cast<Node* (*)()>(reinterpret_cast<void*>(mutator)), context);
#endif
}

}  // namespace pgwarp
