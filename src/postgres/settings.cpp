#include "postgres/settings.h"

#include "postgres/am/method_settings.h"
#include "postgres/postgres_headers.h"

#include <climits>

namespace pgwarp
{

int setting_device = 0;
int setting_engine_memory_mb = 0;
char* setting_gpus = nullptr;
int setting_engine_timeout_ms = 10000;
int setting_load_wait_ms = 60000;
int setting_load_workers = 0;
bool setting_load_at_start = true;
bool setting_merge_worker = true;
int setting_engine_threads = 0;
double setting_recall = 0;
int setting_iterative = 0;
bool setting_verify_results = false;
int setting_merge_step_rows = 0;
int setting_fault = 0;
bool setting_knn_batch = true;
int setting_batch_size = 1024;

static const config_enum_entry device_choices[] = {{"auto", static_cast<int>(DeviceSetting::automatic), false},
                                                   {"cuda", static_cast<int>(DeviceSetting::cuda), false},
                                                   {"cpu", static_cast<int>(DeviceSetting::cpu), false},
                                                   {nullptr, 0, false}};

static const config_enum_entry iterative_choices[] = {{"strict", static_cast<int>(IterativeSetting::strict), false},
                                                      {"relaxed", static_cast<int>(IterativeSetting::relaxed), false},
                                                      {nullptr, 0, false}};

constexpr int most_gpu_digits = 4;

// Whether a text is empty or a list of numbers separated by commas and blanks.
static bool is_number_list(const char* text)
{
    if (*text == '\0') return true;
    for (;; ++text) {
        text += strspn(text, " ");
        const size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > most_gpu_digits) return false;
        text += digits;
        if (*text != ',') return *text == '\0';
    }
}

static bool check_gpus(char** value, void**, GucSource)
{
    if (is_number_list(*value) && strlen(*value) <= most_gpus_length) return true;
    GUC_check_errdetail("A list of numbers separated by commas is expected, at most %zu bytes long; empty means all.",
                        most_gpus_length);
    return false;
}

// Define the settings that become arguments of the engine; a reload with other values restarts it.
static void define_engine_settings()
{
    DefineCustomEnumVariable("pgwarp.device", "Device that answers searches.",
                             "auto uses a GPU where there is one, cuda insists on it, cpu never does.", &setting_device,
                             static_cast<int>(DeviceSetting::automatic), device_choices, PGC_SIGHUP, 0, nullptr,
                             nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.engine_memory", "Memory for resident indexes, of each GPU or of the host.",
                            "0 means a share of what is free when the engine starts.", &setting_engine_memory_mb, 0, 0,
                            INT_MAX, PGC_SIGHUP, GUC_UNIT_MB, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.engine_threads", "Threads of a search or a build in the engine.",
                            "0 means all cores that the engine may use.", &setting_engine_threads, 0, 0, 1024,
                            PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
    DefineCustomStringVariable("pgwarp.gpus", "GPUs to use, by number, separated by commas.", "Empty means all.",
                               &setting_gpus, "", PGC_SIGHUP, 0, check_gpus, nullptr, nullptr);
}

static void define_wait_settings()
{
    DefineCustomIntVariable("pgwarp.engine_timeout", "How long a statement waits for the engine to start.", nullptr,
                            &setting_engine_timeout_ms, 10000, 100, INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr, nullptr,
                            nullptr);
    DefineCustomIntVariable("pgwarp.load_wait", "How long a search waits while another process loads its index.",
                            nullptr, &setting_load_wait_ms, 60000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr,
                            nullptr, nullptr);
}

static void define_load_settings()
{
    DefineCustomIntVariable("pgwarp.load_workers", "Processes that load one index into the engine.",
                            "0 means by the number of cores and of worker slots.", &setting_load_workers, 0, 0, 64,
                            PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable("pgwarp.load_at_start",
                             "Load indexes that were in use again when the engine was restarted.", nullptr,
                             &setting_load_at_start, true, PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable("pgwarp.merge_worker", "Merge indexes between two visits of autovacuum.",
                             "A background worker does it when inserted rows cost searches too much. Without "
                             "autovacuum there is none.",
                             &setting_merge_worker, true, PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
}

static void define_search_settings()
{
    DefineCustomRealVariable("pgwarp.recall", "Recall that searches aim at.",
                             "The calibration measured at build tells which effort reaches it. 0 means the index's "
                             "option recall, or 0.95 where it has none.",
                             &setting_recall, 0.0, 0.0, 1.0, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomEnumVariable(
        "pgwarp.iterative", "Order of rows that a scan finds late.",
        "strict leaves out a row that is nearer than one already returned, relaxed returns it at once.",
        &setting_iterative, static_cast<int>(IterativeSetting::strict), iterative_choices, PGC_USERSET, 0, nullptr,
        nullptr, nullptr);
    DefineCustomBoolVariable("pgwarp.verify_results", "Compare every returned distance with the table row's own.",
                             "For tests: a difference is an error.", &setting_verify_results, false, PGC_USERSET, 0,
                             nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.merge_step_rows", "Rows that a merge takes at a time; 0: by the index's size.",
                            nullptr, &setting_merge_step_rows, 0, 0, INT_MAX, PGC_SUSET,
                            GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.fault", "Fault that searches inject into an engine built for tests.", nullptr,
                            &setting_fault, 0, 0, 4, PGC_SUSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, nullptr, nullptr,
                            nullptr);
}

static void define_batch_settings()
{
    DefineCustomBoolVariable("pgwarp.knn_batch", "Answer the searches of a lateral join or a sub-select in batches.",
                             "The searches of a partitioned table's scans become one request.", &setting_knn_batch,
                             true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.batch_size", "Outer rows of a k-NN join that are searched for together.",
                            "A join begins with few, and reads no more than work_mem holds.", &setting_batch_size, 1024,
                            1, 100000, PGC_USERSET, 0, nullptr, nullptr, nullptr);
}

void define_settings()
{
    define_engine_settings();
    define_wait_settings();
    define_load_settings();
    define_search_settings();
    define_method_settings();
    define_batch_settings();
    MarkGUCPrefixReserved("pgwarp");
}

}  // namespace pgwarp
