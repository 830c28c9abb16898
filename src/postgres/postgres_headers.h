// PostgreSQL's headers for C++. Include this first, because PostgreSQL's macros must not change the standard library's
// headers.
#pragma once

// PostgreSQL 15 leaves this empty outside Windows; pgwarp is compiled with hidden visibility, so the module's magic
// function needs it.
#ifndef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

extern "C" {
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/generic_xlog.h"
#include "access/relation.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/itemptr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
}

// From 19 on scans of tables and indexes begin with flags, of which none is needed here, and the mode of a lock on a
// page has a type.
#if PG_VERSION_NUM >= 190000
#define PGWARP_NO_SCAN_FLAGS , SO_NONE
using BufferLock = BufferLockMode;
#else
#define PGWARP_NO_SCAN_FLAGS
using BufferLock = int;
#endif
