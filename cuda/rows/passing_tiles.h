// The nearest of the rows that pass the predicate of each query, where many rows pass: the queries of a batch share the
// reads of all rows. Masks tell which rows pass (row_masks.h). Matrix tiles compute the scores of exact search, and
// keep the best admitted one of each group of 32 positions (distance/proposals.h). The k nearest rows lie in the k best
// groups, but for the error of scores; the rows of some more groups are compared as passing_rows.h compares all.
// The bound of exact search (distance/score_bound.h) proves that no other group has a row of the answer. Queries
// without a proof get no_answer; they are to be searched otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "device/searcher.h"
#include "distance/half_rows.h"
#include "rows/certain_rows.h"
#include "rows/distinct_filters.h"

namespace pgwarp::cuda::rows
{

// The rows of an index as they are scored, and as they are compared.
struct TiledRows {
    const ScoredRows* scored = nullptr;  // of a half kind: of the full vectors, or of the halves that are compared
    CertainRows compared;
};

struct TilesPlan : ChunkPlan {
    std::shared_ptr<const DistinctFilters> filters;
    AttributeView attributes;
    std::uint32_t slots = 0;   // places of queries
    std::uint32_t groups = 0;  // of each query whose rows are compared
};

// The steps of a search, for those who measure them.
enum class TilesStep : std::uint8_t { masks, scores, choice, answers };
using StepEnd = std::function<void(TilesStep)>;

// Groups of a query whose rows are compared: the nearest lie in k of them, and the next ones stand off by more than the
// error of scores where their number is a good part of k.
std::uint32_t compared_groups(std::uint32_t k);

// predicates: of the queries; k: at most most_compared_k; room: bytes of device memory. The predicates' memory outlives
// the plan.
TilesPlan plan_passing_tiles(const TiledRows& rows, const AttributeView& attributes,
                             std::span<const PredicateWords> predicates, std::uint32_t k, std::size_t room,
                             ThreadPool& pool);
// step_end: called when the launches of a step are enqueued; may be empty.
void enqueue_passing_tiles(Context& context, const TiledRows& rows, const TilesPlan& plan, const Chunk& chunk,
                           ThreadPool& pool, const StepEnd& step_end = {});

// Estimated nanoseconds of a large card for `queries` queries, of which `passing` rows each pass: by tiles, and by
// passing_rows.h.
double tiles_nanoseconds(std::uint64_t rows, std::uint32_t dimensions, std::size_t queries);
double pieces_nanoseconds(std::uint64_t rows, std::uint32_t dimensions, std::size_t queries, double passing);

}  // namespace pgwarp::cuda::rows
