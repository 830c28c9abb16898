#include "postgres/executor/knn_bitmap.h"

extern "C" {
#include "executor/executor.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

namespace pgwarp
{

struct KnnBitmap {
    PlanState* plan;
    MemoryContext context;  // of the addresses
    bool made;
    const SearchTids* tids;  // null: too many
    // For EXPLAIN, as a loop makes many: whether there was one, and one with too many; the most rows and lossy pages.
    bool any, any_too_large;
    uint64 most_rows, most_lossy_pages;
};

namespace
{

void count_tids(KnnBitmap* bitmap)
{
    bitmap->any = true;
    const SearchTids* tids = bitmap->tids;
    if (tids == nullptr) {
        bitmap->any_too_large = true;
        return;
    }
    bitmap->most_rows = Max(bitmap->most_rows, tids->tids);
    bitmap->most_lossy_pages = Max(bitmap->most_lossy_pages, tids->lossy_pages);
}

void make_tids(KnnBitmap* bitmap)
{
    MemoryContextReset(bitmap->context);
    auto* pages = reinterpret_cast<TIDBitmap*>(MultiExecProcNode(bitmap->plan));
    if (pages == nullptr || !IsA(pages, TIDBitmap)) elog(ERROR, "unrecognized result from subplan");
    MemoryContext outer = MemoryContextSwitchTo(bitmap->context);
    bitmap->tids = collect_tids(pages);
    MemoryContextSwitchTo(outer);
    tbm_free(pages);
    bitmap->made = true;
    count_tids(bitmap);
}

}  // namespace

KnnBitmap* begin_knn_bitmap(Plan* plan, EState* executor, int flags)
{
    auto* bitmap = static_cast<KnnBitmap*>(palloc0(sizeof(KnnBitmap)));
    bitmap->plan = ExecInitNode(plan, executor, flags);
    bitmap->context = AllocSetContextCreate(executor->es_query_cxt, "KnnFilter bitmap", ALLOCSET_DEFAULT_SIZES);
    return bitmap;
}

PlanState* plan_of_knn_bitmap(const KnnBitmap* bitmap)
{
    return bitmap->plan;
}

const SearchTids* tids_of_knn_bitmap(KnnBitmap* bitmap)
{
    if (!bitmap->made) make_tids(bitmap);
    return bitmap->tids;
}

double expected_share(const KnnBitmap* bitmap, Relation table)
{
    const SearchTids* tids = bitmap->tids;
    if (tids == nullptr || tids->lossy_pages == 0) return 1.0;
    const auto pages = Max(1.0, static_cast<double>(table->rd_rel->relpages));
    const double of_page = Max(1.0, table->rd_rel->reltuples / pages);
    const double rows = static_cast<double>(tids->tids) + static_cast<double>(tids->lossy_pages) * of_page;
    return Min(1.0, bitmap->plan->plan->plan_rows / rows);
}

void rescan_knn_bitmap(KnnBitmap* bitmap, const Bitmapset* parameters)
{
    if (parameters != nullptr) UpdateChangedParamSet(bitmap->plan, const_cast<Bitmapset*>(parameters));
    // MultiExecProcNode() then rescans.
    if (bitmap->plan->chgParam != nullptr) bitmap->made = false;
}

void end_knn_bitmap(KnnBitmap* bitmap)
{
    ExecEndNode(bitmap->plan);
    MemoryContextDelete(bitmap->context);
}

void explain_knn_bitmap(const KnnBitmap* bitmap, ExplainState* explanation)
{
    if (!bitmap->any) return;
    if (bitmap->any_too_large) return ExplainPropertyText("Bitmap", "too large", explanation);
    ExplainPropertyUInteger("Bitmap Rows", nullptr, bitmap->most_rows, explanation);
    if (bitmap->most_lossy_pages > 0) {
        ExplainPropertyUInteger("Bitmap Lossy Blocks", nullptr, bitmap->most_lossy_pages, explanation);
    }
}

}  // namespace pgwarp
