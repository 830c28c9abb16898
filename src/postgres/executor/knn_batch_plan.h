// The plan node of a KnnBatch, as the planner makes it and the executor reads it.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/plannodes.h"
}

namespace pgwarp
{

// The content of the plan node. custom_exprs: the query over the outer row, LIMIT and OFFSET, and the largest distance
// of interest, also over the outer row, and the values of the scans' search keys; none of them raises an error
// (evaluate_ahead.h). A null constant: there is none. custom_private: the indexes' oids, whether rows are filtered
// below the LIMIT, whether rows are read one at a time, and the search keys, which are the same for all indexes.
struct KnnBatchPlan {
    Expr* query;
    Expr* limit;
    Expr* offset;
    Expr* within;
    List* indexes;
    bool filtered;
    bool alone = false;
    List* keys = NIL;    // knn_batch_keys.cpp
    List* values = NIL;  // of the keys
};

// The parts of the plan node from its content, and the reverse.
List* knn_batch_expressions(const KnnBatchPlan& plan);
List* knn_batch_private(const KnnBatchPlan& plan);
KnnBatchPlan read_knn_batch_plan(const CustomScan* scan);

}  // namespace pgwarp
