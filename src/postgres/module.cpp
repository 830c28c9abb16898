// The library's entry point.
#include "postgres/postgres_headers.h"

#include "postgres/am/option_changes.h"
#include "postgres/client/launcher.h"
#include "postgres/client/message_fault.h"
#include "postgres/executor/answer_sources.h"
#include "postgres/executor/plan_hints.h"
#include "postgres/planner/bounded_path.h"
#include "postgres/planner/index_only_path.h"
#include "postgres/planner/knn_batch_path.h"
#include "postgres/planner/knn_bitmap_path.h"
#include "postgres/planner/knn_filter_path.h"
#include "postgres/planner/knn_partitions_path.h"
#include "postgres/planner/ordered_path.h"
#include "postgres/planner/subplan_batch.h"
#include "postgres/settings.h"
#include "postgres/storage/fault_point.h"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

// Define settings, install the planner's and executor's hooks, and with shared_preload_libraries register the launcher.
void _PG_init(void)
{
    pgwarp::define_fault_settings();
    pgwarp::define_message_fault_settings();
    pgwarp::define_settings();
    pgwarp::init_launcher();
    pgwarp::init_option_changes();
    pgwarp::init_answer_sources();
    pgwarp::init_plan_hints();
    pgwarp::init_knn_batch();
    pgwarp::init_subplan_batch();
    pgwarp::init_ordered_path();
    pgwarp::init_bounded_path();
    pgwarp::init_index_only_path();
    pgwarp::init_knn_filter();  // runs after the hooks that add index paths
    pgwarp::init_knn_bitmap();
    pgwarp::init_knn_partitions();
}
