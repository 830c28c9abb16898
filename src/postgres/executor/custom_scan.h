// Makes the nodes of pgwarp's custom scans: each has one child, and its expressions refer to the child's columns.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
}

namespace pgwarp
{

// Makes the zeroed state of a node; State begins with its CustomScanState.
template <class State>
Node* make_custom_state(const CustomExecMethods* methods)
{
    void* memory = palloc0(sizeof(State));
    static_cast<Node*>(memory)->type = T_CustomScanState;
    static_cast<State*>(memory)->custom.methods = methods;
    return static_cast<Node*>(memory);
}

// A node's name in EXPLAIN, and its callbacks.
struct CustomScanCallbacks {
    const char* name;
    void (*begin)(CustomScanState* node, EState* executor, int flags);
    TupleTableSlot* (*execute)(CustomScanState* node);
    void (*end)(CustomScanState* node);
    void (*rescan)(CustomScanState* node);
    void (*explain)(CustomScanState* node, List* ancestors, ExplainState* explanation);
};
CustomExecMethods make_custom_methods(const CustomScanCallbacks& callbacks);

}  // namespace pgwarp
