#include "postgres/functions/index_advice.h"

#include <cmath>

#include "numeric/bits.h"
#include "postgres/storage/page.h"
#include "protocol/format.h"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
}

namespace pgwarp
{

namespace
{

constexpr double tid_bytes = 6;
// Metapage, directory, logs, tombstones, and the last pages of arrays, which are not full.
constexpr double fixed_pages = 27;
// Reading rows, sending them to the engine and writing pages, for each byte read or written, of one process.
constexpr double copy_seconds_of_byte = 3e-9;
// Of comparing a value of a row in the engine, on one core.
constexpr double compare_seconds_of_value = 1.5e-10;
// An exact method is recommended up to this time of a search.
constexpr double longest_exact_search = 0.002;
// The recommended approximate method takes the least time for its build and this number of searches.
constexpr double counted_searches = 10000;

bool is_dense(ElementType element)
{
    return !is_list(element);
}

// The dimensions of the column's type; else those of its rows, where all have the same.
int dimensions_of(const AdvisedColumn& column, const SampledShape& sampled)
{
    if (column.declared_dimensions > 0) return column.declared_dimensions;
    return sampled.least_dimensions == sampled.most_dimensions ? sampled.least_dimensions : 0;
}

IndexShape shape_of(const AdvisedClass& candidate, int dimensions)
{
    IndexShape shape = {};
    shape.method = candidate.method->method;
    shape.element = candidate.element;
    shape.metric = static_cast<uint8>(candidate.metric);
    const bool of_bits = candidate.element == ElementType::bit;
    shape.dimensions = static_cast<uint32>(of_bits ? words_of_bits(static_cast<uint32>(dimensions)) : dimensions);
    return shape;
}

// The share of the sample that an index has rows for: not NULLs, nor zero vectors under cosine.
double indexed_share(const AdvisedColumn& column, const AdvisedClass& candidate, const SampledShape& sampled)
{
    if (column.sample.count == 0) return 1;
    const auto count = static_cast<double>(column.sample.count);
    const double present = static_cast<double>(column.sample.values) / count;
    return candidate.metric == Metric::cosine ? present * (1 - sampled.zero_share) : present;
}

// The dimensions that comparing a row counts as.
double compared_width(const IndexShape& shape, const ListType* list)
{
    return list != nullptr ? list->width : shape.dimensions;
}

double build_seconds(const AdvisedEngine& engine, const BuildEstimate& estimate, double read_bytes)
{
    const double processes = Min(max_parallel_maintenance_workers + 1, engine.threads);
    const double copying = (read_bytes + estimate.stored_bytes) * copy_seconds_of_byte / processes;
    const bool on_gpu = engine.has_gpu && estimate.gpu_bytes > 0;
    return copying + (on_gpu ? estimate.gpu_seconds : estimate.core_seconds / engine.threads);
}

// Fills in the numbers from the method's estimate.
void estimate_numbers(const AdvisedColumn& column, const IndexShape& shape, const ListType* list, IndexAdvice* advice)
{
    const MethodDescription& method = *advice->of->method;
    const BuildEstimate estimate = method.estimate_build({shape, advice->rows, advice->sampled.words});
    const double tids = advice->rows * tid_bytes;
    advice->index_bytes =
        (std::ceil((estimate.stored_bytes + tids) / page_capacity) + fixed_pages) * static_cast<double>(BLCKSZ);
    const bool on_gpu = column.engine.has_gpu && estimate.gpu_bytes > 0;
    advice->engine_bytes = tids + (on_gpu ? 0 : estimate.host_bytes);
    advice->gpu_bytes = on_gpu ? estimate.gpu_bytes : 0;
    const double row_bytes = list != nullptr ? advice->sampled.words * sizeof(uint32) : bytes_of_floats(shape);
    advice->build_seconds = build_seconds(column.engine, estimate, advice->rows * row_bytes);
    advice->compared_rows = method.compared_rows({shape.element, advice->rows, {}, {}});
    advice->search_seconds = advice->compared_rows * compared_width(shape, list) * compare_seconds_of_value;
}

// Whether the engine has room for the index.
bool fits(const AdvisedColumn& column, const IndexAdvice& advice)
{
    const double needed = advice.gpu_bytes > 0 ? advice.gpu_bytes : advice.engine_bytes;
    return column.engine.memory <= 0 || needed <= column.engine.memory;
}

// The time that a recommendation makes least.
double expected_seconds(const IndexAdvice& advice)
{
    return advice.build_seconds + counted_searches * advice.search_seconds;
}

// Exact answers are preferred where they come fast, then indexes that fit, then the least time.
bool is_better(const AdvisedColumn& column, const IndexAdvice& one, const IndexAdvice& other)
{
    const bool one_fits = fits(column, one);
    if (one_fits != fits(column, other)) return one_fits;
    const bool one_is_exact = one.is_exact && one.search_seconds <= longest_exact_search;
    const bool other_is_exact = other.is_exact && other.search_seconds <= longest_exact_search;
    if (one_is_exact != other_is_exact) return one_is_exact;
    return expected_seconds(one) < expected_seconds(other);
}

}  // namespace

IndexAdvice advise_class(const AdvisedColumn& column, const AdvisedClass* candidate)
{
    IndexAdvice advice = {};
    advice.of = candidate;
    const ListType* list = find_list_type(candidate->element, column.type);
    advice.sampled = measure_sample(column.sample, candidate->element, list);
    advice.dimensions = is_dense(candidate->element) ? dimensions_of(column, advice.sampled) : 0;
    advice.rows = column.rows * indexed_share(column, *candidate, advice.sampled);
    advice.is_exact = candidate->method->complete.has(candidate->element);
    const bool has_shape = advice.dimensions > 0 || !is_dense(candidate->element);
    advice.known = has_shape && candidate->method->estimate_build != nullptr;
    if (advice.known) estimate_numbers(column, shape_of(*candidate, advice.dimensions), list, &advice);
    return advice;
}

void recommend(const AdvisedColumn& column, IndexAdvice* advices, int count)
{
    if (column.rows < fewest_indexed_rows) return;
    IndexAdvice* best = nullptr;
    for (int i = 0; i < count; ++i) {
        if (!advices[i].known) continue;
        if (best == nullptr || is_better(column, advices[i], *best)) best = &advices[i];
    }
    if (best != nullptr) best->is_recommended = true;
}

}  // namespace pgwarp
