// The extension's settings (GUCs) that belong to no single access method, all with the reserved prefix pgwarp. Settings
// of methods are in am/method_settings.h.
#pragma once

#include <cstddef>

namespace pgwarp
{

// Values of pgwarp.device and pgwarp.iterative.
enum class DeviceSetting : int { automatic = 0, cuda = 1, cpu = 2 };
enum class IterativeSetting : int { strict = 0, relaxed = 1 };

extern int setting_device;            // pgwarp.device, SIGHUP
extern int setting_engine_memory_mb;  // pgwarp.engine_memory, SIGHUP, 0 = a share of free memory
extern char* setting_gpus;            // pgwarp.gpus, SIGHUP, at most this many bytes:
inline constexpr size_t most_gpus_length = 127;
extern int setting_engine_timeout_ms;  // pgwarp.engine_timeout, USERSET, default 10 s
extern int setting_load_wait_ms;       // pgwarp.load_wait, USERSET, default 60 s
extern int setting_load_workers;       // pgwarp.load_workers, SIGHUP, 0 = by cores and worker slots
extern bool setting_load_at_start;     // pgwarp.load_at_start, SIGHUP, on
extern bool setting_merge_worker;      // pgwarp.merge_worker, SIGHUP, on
extern int setting_engine_threads;     // pgwarp.engine_threads, SIGHUP, 0 = all cores
extern double setting_recall;          // pgwarp.recall, USERSET, 0 = the index's option: see recall_asked()
extern int setting_iterative;          // pgwarp.iterative, USERSET, strict
extern bool
    setting_verify_results;  // pgwarp.verify_results, USERSET, off: compare each emitted distance with the heap row's
extern int setting_merge_step_rows;  // pgwarp.merge_step_rows, SUSET, hidden: rows of a step of a merge, 0 = by size
extern int setting_fault;       // pgwarp.fault, SUSET, hidden: Fault sent with searches (test builds of the engine)
extern bool setting_knn_batch;  // pgwarp.knn_batch, USERSET, on
extern int setting_batch_size;  // pgwarp.batch_size, USERSET: outer rows of a k-NN join searched together

// Defines all settings and reserves the prefix. Called by _PG_init.
void define_settings();

}  // namespace pgwarp
