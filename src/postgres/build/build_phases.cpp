// Numbers and names of the phases.
#include "postgres/build/build_phases.h"

#include "postgres/am/callbacks.h"

extern "C" {
#include "commands/progress.h"
#include "pgstat.h"
#include "utils/backend_status.h"
}

namespace pgwarp
{

namespace
{

// The progress view holds numbers, so each phase that the engine may name has one here. PostgreSQL itself uses number
// 1.
const char* const phase_names[] = {
    "building",  // any other
    "sorting rows",    "training lists",         "assigning rows",       "training quantizer",
    "encoding rows",   "measuring half vectors", "writing half vectors", "writing rows",
    "calibrating",     "writing pages",          "copying rows",         "sampling rows",
    "training tree",   "choosing lines",         "reading rows",         "grouping rows",
    "comparing rows",  "projecting rows",        "pruning edges",        "adding reverse edges",
    "connecting rows", "choosing seeds",         "inserting rows",       "linking rows",
};
constexpr int64 unknown_percent = 101;
constexpr int64 percent_steps = 102;

int64 phase_number(const char* phase)
{
    for (size_t i = 1; i < lengthof(phase_names); ++i) {
        if (strcmp(phase_names[i], phase) == 0) return static_cast<int64>(i);
    }
    return 0;
}

}  // namespace

void report_build_phase(const char* phase, uint64 done, uint64 total)
{
    // During VACUUM the progress view shows VACUUM's own phases.
    if (MyBEEntry == nullptr || MyBEEntry->st_progress_command != PROGRESS_COMMAND_CREATE_INDEX) return;
    const int64 percent =
        total == 0 ? unknown_percent
                   : static_cast<int64>(Min(100.0, 100.0 * static_cast<double>(done) / static_cast<double>(total)));
    pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, (phase_number(phase) + 1) * percent_steps + percent);
}

char* build_phase_name(int64 encoded)
{
    if (encoded == PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE) return pstrdup("initializing");
    const int64 phase = encoded / percent_steps - 1;
    if (phase < 0 || phase >= static_cast<int64>(lengthof(phase_names))) return nullptr;
    const auto percent = static_cast<int>(encoded % percent_steps);
    return percent == unknown_percent ? pstrdup(phase_names[phase])
                                      : psprintf("%s (%d %%)", phase_names[phase], percent);
}

// The phase of a number, without its percentage; null: PostgreSQL's own first one, or none.
static const char* plain_phase(int64 encoded)
{
    const int64 phase = encoded / percent_steps - 1;
    return phase >= 0 && phase < static_cast<int64>(lengthof(phase_names)) ? phase_names[phase] : nullptr;
}

char* hnsw_phase_name(int64 encoded)
{
    if (encoded == PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE) return pstrdup("initializing");
    return plain_phase(encoded) != nullptr ? pstrdup("loading tuples") : nullptr;
}

char* ivfflat_phase_name(int64 encoded)
{
    if (encoded == PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE) return pstrdup("initializing");
    const char* phase = plain_phase(encoded);
    if (phase == nullptr) return nullptr;
    if (strcmp(phase, "training lists") == 0) return pstrdup("performing k-means");
    return pstrdup(strcmp(phase, "assigning rows") == 0 ? "assigning tuples" : "loading tuples");
}

}  // namespace pgwarp
