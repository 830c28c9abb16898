// The entry point of vector.so: pgvector's settings, as far as searches by pgwarp.so have a use for them.
#include "postgres/postgres_headers.h"

#include "postgres/am/alias_settings.h"

#include <climits>

extern "C" {
#include "utils/guc.h"
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

namespace
{

enum IterativeScan : int { iterative_off, iterative_relaxed, iterative_strict };

const config_enum_entry hnsw_iterative_scans[] = {{"off", iterative_off, false},
                                                  {"relaxed_order", iterative_relaxed, false},
                                                  {"strict_order", iterative_strict, false},
                                                  {nullptr, 0, false}};
const config_enum_entry ivfflat_iterative_scans[] = {
    {"off", iterative_off, false}, {"relaxed_order", iterative_relaxed, false}, {nullptr, 0, false}};

int ef_search;
int hnsw_iterative_scan;
int max_scan_tuples;
double scan_mem_multiplier;
int probes;
int ivfflat_iterative_scan;
int max_probes;

constexpr int usual_scan_tuples = 20000;
constexpr double usual_mem_multiplier = 1;
constexpr int most_lists = 32768;

pgwarp::AliasSettings settings;

// Notes, for the assign hook, whether a value was set by anyone.
bool note_whether_set(int*, void** extra, GucSource source)
{
#if PG_VERSION_NUM >= 160000
    void* noted = guc_malloc(LOG, sizeof(bool));
#else
    void* noted = malloc(sizeof(bool));
#endif
    if (noted == nullptr) return false;
    *static_cast<bool*>(noted) = source > PGC_S_DYNAMIC_DEFAULT;
    *extra = noted;
    return true;
}

void assign_ef_search(int value, void* extra)
{
    settings.ef_search = *static_cast<const bool*>(extra) ? value : 0;
}

void assign_probes(int value, void* extra)
{
    settings.probes = *static_cast<const bool*>(extra) ? value : 0;
}

// Warns, once in a session, that a setting has no effect.
void warn_of_no_effect(const char* name, bool* warned)
{
    if (*warned) return;
    *warned = true;
    ereport(WARNING, (errmsg("%s has no effect", name),
                      errdetail("Scans of pgwarp's indexes go on until the statement has its rows.")));
}

bool check_scan_tuples(int* value, void**, GucSource source)
{
    static bool warned = false;
    if (source == PGC_S_SESSION && *value != usual_scan_tuples) warn_of_no_effect("hnsw.max_scan_tuples", &warned);
    return true;
}

bool check_mem_multiplier(double* value, void**, GucSource source)
{
    static bool warned = false;
    if (source == PGC_S_SESSION && *value != usual_mem_multiplier) {
        warn_of_no_effect("hnsw.scan_mem_multiplier", &warned);
    }
    return true;
}

bool check_max_probes(int* value, void**, GucSource source)
{
    static bool warned = false;
    if (source == PGC_S_SESSION && *value != most_lists) warn_of_no_effect("ivfflat.max_probes", &warned);
    return true;
}

void define_hnsw_settings()
{
    DefineCustomIntVariable("hnsw.ef_search", "Sets the size of the dynamic candidate list for search",
                            "Valid range is 1..1000. Until it is set, pgwarp.recall chooses.", &ef_search, 40, 1, 1000,
                            PGC_USERSET, 0, note_whether_set, assign_ef_search, nullptr);
    DefineCustomEnumVariable("hnsw.iterative_scan", "Sets the mode for iterative scans",
                             "Every scan goes on until the statement has its rows, in strict order.",
                             &hnsw_iterative_scan, iterative_off, hnsw_iterative_scans, PGC_USERSET, 0, nullptr,
                             nullptr, nullptr);
    DefineCustomIntVariable("hnsw.max_scan_tuples", "Has no effect: scans go on until the statement has its rows",
                            nullptr, &max_scan_tuples, usual_scan_tuples, 1, INT_MAX, PGC_USERSET, 0, check_scan_tuples,
                            nullptr, nullptr);
    DefineCustomRealVariable("hnsw.scan_mem_multiplier", "Has no effect: scans go on until the statement has its rows",
                             nullptr, &scan_mem_multiplier, usual_mem_multiplier, 1, 1000, PGC_USERSET, 0,
                             check_mem_multiplier, nullptr, nullptr);
    MarkGUCPrefixReserved("hnsw");
}

void define_ivfflat_settings()
{
    DefineCustomIntVariable("ivfflat.probes", "Sets the number of probes",
                            "Valid range is 1..lists. Until it is set, pgwarp.recall chooses.", &probes, 1, 1,
                            most_lists, PGC_USERSET, 0, note_whether_set, assign_probes, nullptr);
    DefineCustomEnumVariable("ivfflat.iterative_scan", "Sets the mode for iterative scans",
                             "Every scan goes on until the statement has its rows, in strict order.",
                             &ivfflat_iterative_scan, iterative_off, ivfflat_iterative_scans, PGC_USERSET, 0, nullptr,
                             nullptr, nullptr);
    DefineCustomIntVariable("ivfflat.max_probes", "Has no effect: scans go on until the statement has its rows",
                            nullptr, &max_probes, most_lists, 1, most_lists, PGC_USERSET, 0, check_max_probes, nullptr,
                            nullptr);
    MarkGUCPrefixReserved("ivfflat");
}

}  // namespace

// Defines the settings, and tells pgwarp.so where their values are.
void _PG_init(void)
{
    define_hnsw_settings();
    define_ivfflat_settings();
    *find_rendezvous_variable(pgwarp::alias_settings_variable) = &settings;
}
