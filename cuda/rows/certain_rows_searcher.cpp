#include "rows/certain_rows_searcher.h"

#include <algorithm>

#include "device/wait.h"
#include "methods/device_wait.h"
#include "methods/ordered_scan.h"
#include "rows/passing_rows.h"
#include "rows/passing_tiles.h"

namespace pgwarp::cuda::rows
{

bool CertainRowsSearcher::compares_certain_rows() const
{
    const std::optional<CertainRows> rows = certain_rows();
    return rows.has_value() && serves_certain_rows(context(), rows->resident);
}

double CertainRowsSearcher::shared_cost(std::size_t queries) const
{
    constexpr double operations = 20;  // in a nanosecond
    // Others have no form of scores, or make it when they first search by it.
    if (scored_rows() == nullptr) return TestsAllRows::shared_cost(queries);
    const double all = tiles_nanoseconds(row_count(), static_cast<std::uint32_t>(dimensions()), queries);
    return operations * all / static_cast<double>(queries);
}

void CertainRowsSearcher::search_lists(const SearchBatch& batch, std::span<const RowList> lists, const RowResult& after,
                                       const Tombstones* dead, Results& results, ThreadPool& pool) const
{
    CertainRows rows = certain_rows().value();
    if (dead != nullptr) rows.dead = dead->words.data();
    const auto k = static_cast<std::uint32_t>(std::min<std::size_t>(batch.k, row_count()));
    if (k > most_compared_k || comes_before(before_all, after))
        return search_one_by_one(batch, lists, {after.distance, after.row}, rows, results, pool);
    const auto plan_of = [&](std::size_t first, std::size_t count, std::size_t) {
        return plan_certain_rows(context(), lists.subspan(first, count), k);
    };
    const auto enqueue = [&](const CertainPlan& plan, const Chunk& chunk) {
        enqueue_certain_rows(rows, plan, chunk, pool);
    };
    search_round(batch, Round(batch), plan_of, enqueue, results, pool);
}

void CertainRowsSearcher::search_passing(const SearchBatch& batch, Results& results, ThreadPool& pool) const
{
    const double elements = static_cast<double>(batch.count * row_count()) * static_cast<double>(dimensions());
    const DevicePatience patience(patience_for(2 * elements, 0, elements * canonical_operations));
    search_some(batch, results, [&](const Tombstones* dead) { search_tested(batch, dead, results, pool); });
}

namespace
{

std::vector<PredicateWords> predicates_of(const SearchBatch& batch, const Round& round)
{
    std::vector<PredicateWords> predicates;
    predicates.reserve(round.size());
    for (std::size_t i = 0; i < round.size(); ++i) predicates.push_back(batch.filters[round.number(i)].predicate);
    return predicates;
}

}  // namespace

// The form by which tiles serve the batch; null where they don't, or take longer than a comparison of each query's
// rows.
const ScoredRows* CertainRowsSearcher::scores_for(const SearchBatch& batch, const CertainRows& rows) const
{
    double passing = 0;
    for (const RowFilter& filter : batch.filters) passing += static_cast<double>(filter.passing);
    const auto count = static_cast<std::uint32_t>(row_count());
    const std::uint32_t width = rows.resident.dimensions;
    const double pieces = pieces_nanoseconds(count, width, batch.count, passing / static_cast<double>(batch.count));
    if (tiles_nanoseconds(count, width, batch.count) >= pieces) return nullptr;
    const ScoredRows* const own = scored_rows();
    return own != nullptr ? own : scores_.get(rows, count);
}

void CertainRowsSearcher::search_tested(const SearchBatch& batch, const Tombstones* dead, Results& results,
                                        ThreadPool& pool) const
{
    CertainRows rows = certain_rows().value();
    if (dead != nullptr) rows.dead = dead->words.data();
    const auto k = static_cast<std::uint32_t>(std::min<std::size_t>(batch.k, row_count()));
    const ScoredRows* const scored = scores_for(batch, rows);
    if (scored == nullptr) return search_pieces(batch, Round(batch), rows, k, results, pool);
    std::vector<std::uint32_t> unproved = search_tiles(batch, rows, *scored, k, results, pool).unanswered;
    if (!unproved.empty()) search_pieces(batch, Round(batch, std::move(unproved)), rows, k, results, pool);
}

// Pieces take a small part of the memory of tiles, which keep scores of all rows for each query. So tiles leave the
// queries unanswered for which they find no memory.
Unfinished CertainRowsSearcher::search_tiles(const SearchBatch& batch, const CertainRows& rows,
                                             const ScoredRows& scored, std::uint32_t k, Results& results,
                                             ThreadPool& pool) const
{
    const Round round(batch);
    const AttributeView attributes = attributes_of(batch);
    const std::vector<PredicateWords> predicates = predicates_of(batch, round);
    const TiledRows tiled{&scored, rows};
    // Fewer queries take hardly less memory, and about as long as by pieces.
    constexpr std::size_t least = 16;
    const auto plan_of = [&](std::size_t first, std::size_t count, std::size_t room) {
        return plan_passing_tiles(tiled, attributes, std::span(predicates).subspan(first, count), k, room, pool);
    };
    const auto enqueue = [&](const TilesPlan& plan, const Chunk& chunk) {
        enqueue_passing_tiles(context(), tiled, plan, chunk, pool);
    };
    return search_round(batch, round, plan_of, enqueue, results, pool, least);
}

void CertainRowsSearcher::search_pieces(const SearchBatch& batch, const Round& round, const CertainRows& rows,
                                        std::uint32_t k, Results& results, ThreadPool& pool) const
{
    const AttributeView attributes = attributes_of(batch);
    const std::vector<PredicateWords> predicates = predicates_of(batch, round);
    const auto plan_of = [&](std::size_t first, std::size_t count, std::size_t) {
        return plan_passing_rows(static_cast<std::uint32_t>(row_count()),
                                 SentFilters(attributes, std::span(predicates).subspan(first, count)), k);
    };
    const auto enqueue = [&](const PassingPlan& plan, const Chunk& chunk) {
        enqueue_passing_rows(rows, plan, chunk, pool);
    };
    search_round(batch, round, plan_of, enqueue, results, pool);
}

void CertainRowsSearcher::search_one_by_one(const SearchBatch& batch, std::span<const RowList> lists,
                                            const RowCursor& after, const CertainRows& rows, Results& results,
                                            ThreadPool& pool) const
{
    SearchBatch one = batch;
    one.count = 1;
    for (std::size_t q = 0; q < batch.count; ++q) {
        batch.check_cancel();
        if (lists[q].empty()) continue;
        one.queries = batch.queries.subspan(q * dimensions(), dimensions());
        one.k = static_cast<std::uint32_t>(std::min<std::size_t>(batch.k, lists[q].size()));
        ChunkPlan plan = plan_certain_values(lists[q]);
        plan.ordered = one.k <= ordered_most;
        const auto enqueue = [&](const ChunkPlan& planned, const Chunk& chunk) {
            enqueue_certain_values(rows, planned, chunk, lists[q], after);
        };
        Results answer(1);
        search_one(one, plan, enqueue, answer, pool);
        results[q] = std::move(answer[0]);
    }
}

}  // namespace pgwarp::cuda::rows
