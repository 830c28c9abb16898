// What our custom scans have in common: a node over one child, whose columns its expressions refer to; and questions
// about expressions and the executor that several of them ask.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// The zeroed state of a node; State begins with its CustomScanState.
template <class State>
Node* make_custom_state(const CustomExecMethods* methods)
{
    void* memory = palloc0(sizeof(State));
    static_cast<Node*>(memory)->type = T_CustomScanState;
    static_cast<State*>(memory)->custom.methods = methods;
    return static_cast<Node*>(memory);
}

// What a node is called in EXPLAIN, and what it does.
struct CustomScanCallbacks {
    const char* name;
    void (*begin)(CustomScanState* node, EState* executor, int flags);
    TupleTableSlot* (*execute)(CustomScanState* node);
    void (*end)(CustomScanState* node);
    void (*rescan)(CustomScanState* node);
    void (*explain)(CustomScanState* node, List* ancestors, ExplainState* explanation);
};
CustomExecMethods make_custom_methods(const CustomScanCallbacks& callbacks);

// A path over `child` that hands its rows on, in its order; costs are the child's.
CustomPath* make_custom_path(const Path* child, const CustomPathMethods* methods);

// The plan of such a path. Expressions may refer to the child's columns.
Plan* make_custom_plan(const CustomPath* path, List* targets, List* plans, List* expressions, List* settings,
                       const CustomScanMethods* methods);

// Whether an expression depends on what other parts of the plan compute.
bool has_executor_parameter(Node* node, void* context);

}  // namespace pgwarp
