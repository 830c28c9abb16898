#include "postgres/settings.h"

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
int setting_ivfadc_probes = 0;
int setting_refine_factor = 0;
int setting_graph_ef_search = 0;
int setting_graph_visited = static_cast<int>(GraphChoices::Visited::usual);
GraphChoices setting_graph;
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

static const config_enum_entry visited_choices[] = {{"default", static_cast<int>(GraphChoices::Visited::usual), false},
                                                    {"hash", static_cast<int>(GraphChoices::Visited::hash), false},
                                                    {"bloom", static_cast<int>(GraphChoices::Visited::bloom), false},
                                                    {"cuckoo", static_cast<int>(GraphChoices::Visited::cuckoo), false},
                                                    {nullptr, 0, false}};

constexpr int most_gpu_digits = 4;

// Whether a text is empty or a list of numbers, separated by commas and blanks.
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

// Define what the engine process is started with; a reload restarts it.
static void define_engine_settings()
{
    DefineCustomEnumVariable("pgwarp.device", "Device that answers searches.",
                             "auto uses a GPU where there is one, cuda insists on it, cpu never does.", &setting_device,
                             static_cast<int>(DeviceSetting::automatic), device_choices, PGC_SIGHUP, 0, nullptr,
                             nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.engine_memory", "Memory that resident indexes may use.",
                            "0 means a share of what is free when the engine starts.", &setting_engine_memory_mb, 0, 0,
                            INT_MAX, PGC_SIGHUP, GUC_UNIT_MB, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.engine_threads", "Threads of the engine for one search or build.",
                            "0 means all cores.", &setting_engine_threads, 0, 0, 1024, PGC_SIGHUP, 0, nullptr, nullptr,
                            nullptr);
    DefineCustomStringVariable("pgwarp.gpus", "GPUs to use, by number, separated by commas.", "Empty means all.",
                               &setting_gpus, "", PGC_SIGHUP, 0, check_gpus, nullptr, nullptr);
}

static void define_wait_settings()
{
    DefineCustomIntVariable("pgwarp.engine_timeout", "How long a statement waits for the engine to start.", nullptr,
                            &setting_engine_timeout_ms, 10000, 100, INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr, nullptr,
                            nullptr);
    DefineCustomIntVariable("pgwarp.load_wait", "How long a search waits while another session loads the index.",
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
    DefineCustomIntVariable("pgwarp.ivfadc_probes", "Lists that a search of an ivfadc index visits.",
                            "0 means as many as pgwarp.recall needs.", &setting_ivfadc_probes, 0, 0, 65536, PGC_USERSET,
                            0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.refine_factor",
                            "Candidates per wanted row that are ranked again by better vectors.",
                            "0 means as many as pgwarp.recall needs.", &setting_refine_factor, 0, 0, 10000, PGC_USERSET,
                            0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.graph_ef_search", "Rows that a search of a graph index keeps as its best so far.",
                            "0 means as many as pgwarp.recall needs.", &setting_graph_ef_search, 0, 0, 65536,
                            PGC_USERSET, 0, nullptr, nullptr, nullptr);
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

static bool check_multi_query(int* value, void**, GucSource)
{
    if (GraphChoices::may_share_warp(*value)) return true;
    GUC_check_errdetail("Queries share a warp evenly: 1, 2 or 4; 0 means as many as is usual.");
    return false;
}

// What only a GPU goes by: see GraphChoices.
static void define_graph_settings()
{
    DefineCustomEnumVariable("pgwarp.graph_visited", "How a search of a graph index on a GPU remembers visited rows.",
                             "The filters, bloom and cuckoo, may pass over a few rows.", &setting_graph_visited,
                             static_cast<int>(GraphChoices::Visited::usual), visited_choices, PGC_USERSET, 0, nullptr,
                             nullptr, nullptr);
    DefineCustomBoolVariable("pgwarp.graph_bounded_queue",
                             "Whether the queue of a search on a GPU is no longer than what is kept.", nullptr,
                             &setting_graph.bounded_queue, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable("pgwarp.graph_selected_insertion",
                             "Whether a search on a GPU remembers only visited rows that enter its queue.", nullptr,
                             &setting_graph.selected_insertion, false, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable("pgwarp.graph_visited_deletion",
                             "Whether a search on a GPU forgets visited rows that leave its queue.",
                             "Implies pgwarp.graph_selected_insertion. A Bloom filter can't forget.",
                             &setting_graph.visited_deletion, false, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.graph_multi_query", "Queries that share a warp of a GPU: 1, 2 or 4.",
                            "0 means as many as is usual.", &setting_graph.multi_query, 0, 0,
                            GraphChoices::most_queries_of_warp, PGC_USERSET, 0, check_multi_query, nullptr, nullptr);
    DefineCustomIntVariable("pgwarp.graph_multi_step", "Rows whose neighbours a search on a GPU looks at together.",
                            "0 means as many as is usual.", &setting_graph.multi_step, 0, 0, GraphChoices::most_steps,
                            PGC_USERSET, 0, nullptr, nullptr, nullptr);
}

static void define_batch_settings()
{
    DefineCustomBoolVariable("pgwarp.knn_batch", "Answer the searches of a lateral k-NN join in batches.", nullptr,
                             &setting_knn_batch, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
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
    define_graph_settings();
    define_batch_settings();
    MarkGUCPrefixReserved("pgwarp");
}

}  // namespace pgwarp
