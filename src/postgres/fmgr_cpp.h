// The macro that declares SQL-callable functions in C++.
#pragma once

#include "postgres/postgres_headers.h"

// Declares, exports and registers a version-1 function: PGWARP_FUNCTION(name) { ... uses fcinfo ... }
// The separate declaration is for PostgreSQL 15, whose PG_FUNCTION_INFO_V1 exports the record but not the function.
#define PGWARP_FUNCTION(name)                 \
    extern "C" {                              \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
    PG_FUNCTION_INFO_V1(name);                \
    }                                         \
    Datum name(PG_FUNCTION_ARGS)
