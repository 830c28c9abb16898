// EXPLAIN of a KnnBatch: batches, searches, and rows filtered ahead.
#include "postgres/executor/explain_keys.h"
#include "postgres/executor/knn_batch_state.h"
#include "protocol/standing_out.h"

extern "C" {
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

namespace pgwarp
{

namespace
{

const char* effort_text(const ParameterList& settings)
{
    StringInfoData text;
    initStringInfo(&text);
    for (uint32 i = 0; i < settings.count; ++i) {
        const char* name = settings.items[i].name;
        if (strcmp(name, option_standing_out) == 0 || strcmp(name, option_standing_within) == 0) continue;
        appendStringInfo(&text, "%s%s=" INT64_FORMAT, i > 0 ? ", " : "", name,
                         static_cast<int64>(settings.items[i].value));
    }
    return text.data;
}

// Tells the rows over which the recall behind the effort was measured, where these are not the nearest ones.
void explain_recall(const ParameterList& settings, ExplainState* explanation)
{
    const int64 within = settings.get(option_standing_within, -1);
    if (within < 0) return;
    const char* text =
        psprintf("rows that stand out, within about %.2f; " INT64_FORMAT " sampled rows have some",
                 static_cast<double>(within) / 1e6, static_cast<int64>(settings.get(option_standing_out, 0)));
    ExplainPropertyText("Recall Of", text, explanation);
}

void explain_filtered(const KnnBatchState* state, ExplainState* explanation)
{
    FilteredCounts filtered = {};
    for (uint32 i = 0; state->prepared && i < state->cache_count; ++i) {
        if (state->caches[i].filter == nullptr) continue;
        const FilteredCounts counts = filtered_counts(state->caches[i].filter);
        filtered.looked_up += counts.looked_up;
        filtered.dropped += counts.dropped;
    }
    if (filtered.looked_up == 0) return;
    ExplainPropertyUInteger("Rows Filtered Ahead", nullptr, filtered.looked_up, explanation);
    ExplainPropertyUInteger("Rows Dropped Ahead", nullptr, filtered.dropped, explanation);
}

void explain_counts(const KnnBatchState* state, ExplainState* explanation)
{
    AnswerCacheCounts sum = {};
    for (uint32 i = 0; state->prepared && i < state->cache_count; ++i) {
        const AnswerCacheCounts& counts = state->caches[i].counts;
        sum.requests += counts.requests;
        sum.queries += counts.queries;
        sum.hits += counts.hits;
        sum.deepened += counts.deepened;
        sum.engine_ns += counts.engine_ns;
        sum.on_cuda = sum.on_cuda || counts.on_cuda;
        if (counts.requests > 0) sum.settings = counts.settings;
    }
    ExplainPropertyUInteger("Batches", nullptr, state->batches, explanation);
    ExplainPropertyUInteger("Rows Read", nullptr, state->rows_read, explanation);
    ExplainPropertyUInteger("Requests", nullptr, sum.requests, explanation);
    ExplainPropertyUInteger("Searches", nullptr, sum.queries, explanation);
    ExplainPropertyUInteger("Cache Hits", nullptr, sum.hits, explanation);
    ExplainPropertyUInteger("Deepened", nullptr, sum.deepened, explanation);
    explain_filtered(state, explanation);
    if (state->prepared) explain_keys(state->caches[0].counts.keyed, false, explanation);
    if (sum.requests == 0) return;
    ExplainPropertyText("Device", sum.on_cuda ? "cuda" : "cpu", explanation);
    if (sum.settings.count > 0) ExplainPropertyText("Effort", effort_text(sum.settings), explanation);
    explain_recall(sum.settings, explanation);
    if (explanation->timing) {
        ExplainPropertyFloat("Engine Time", "ms", static_cast<double>(sum.engine_ns) / 1e6, 3, explanation);
    }
}

}  // namespace

void explain_knn_batch(const KnnBatchState* state, ExplainState* explanation)
{
    ExplainPropertyInteger("Batch Size", nullptr, state->most, explanation);
    if (explanation->analyze) explain_counts(state, explanation);
}

}  // namespace pgwarp
