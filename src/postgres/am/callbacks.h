// Callbacks of the access methods that have no header of their own. The file that defines each is named.
#pragma once

#include "postgres/am/methods.h"

namespace pgwarp
{

// build.cpp
IndexBuildResult* build_index(Relation heap, Relation index, IndexInfo* info);
// build_phases.cpp
char* build_phase_name(int64 encoded);
// The same in pgvector's words, for which its clients wait.
char* hnsw_phase_name(int64 encoded);
char* ivfflat_phase_name(int64 encoded);

// scan.cpp
IndexScanDesc begin_scan(Relation index, int key_count, int order_by_count);
void rescan(IndexScanDesc scan, ScanKey keys, int key_count, ScanKey order_bys, int order_by_count);
bool next_tuple(IndexScanDesc scan, ScanDirection direction);
void end_scan(IndexScanDesc scan);

// validate.cpp
bool validate_operator_class(Oid operator_class);
// Of an alias: one of pgvector's classes.
bool validate_alias_class(Oid operator_class);

}  // namespace pgwarp
