// The contract of an index method: a Builder turns rows into stored arrays, and a Searcher answers over loaded arrays.
// Methods know nothing of PostgreSQL, sockets or residency. A new method adds a folder and a row to the registry,
// protocol/methods.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "methods/description.h"
#include "methods/errors.h"
#include "methods/row_bitmap.h"
#include "methods/row_filter.h"
#include "methods/rows/row_buffer.h"
#include "numeric/metric.h"
#include "numeric/parallel.h"
#include "numeric/top_k.h"
#include "protocol/format.h"
#include "protocol/parameters.h"
#include "protocol/rows.h"
#include "protocol/rungs.h"

namespace pgwarp
{

// Whether the rows of a build are floats that halves hold exactly. Unit vectors are not.
inline bool are_halves(const IndexShape& shape)
{
    return shape.element == ElementType::float16 && shape.metric != static_cast<std::uint8_t>(Metric::cosine);
}

struct BuildProgress {
    // phase is a static string ("training lists", "assigning rows", ...); called at least every 100 ms of work.
    std::function<void(const char* phase, std::uint64_t done, std::uint64_t total)> report;
    const CancelToken* cancel = nullptr;
    // Throws Cancelled where the build was cancelled.
    void check_cancel() const
    {
        if (cancel != nullptr) cancel->check();
    }
    // Reports, unless the build was cancelled; then throws Cancelled.
    void advance(const char* phase, std::uint64_t done, std::uint64_t total) const
    {
        check_cancel();
        report(phase, done, total);
    }
};

class RowStream;

class Builder
{
public:
    virtual ~Builder() = default;
    // Takes a piece of an array of an existing index, for builds over one; called before run().
    virtual void give(const ArrayShape&, std::uint64_t, std::span<const std::byte>)
    {
        throw BadRequest("this build takes no arrays");
    }
    // Trains, encodes, calibrates. `rows` is sorted by tid. Dense rows hold no NaN and are normalised if the metric is
    // cosine, unless keeps_halves(); lists pass lists_fault(). The caller owns `rows` and keeps it alive; the builder
    // may compact it. Zero rows are legal.
    virtual void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) = 0;
    // After run(): all arrays in the order in which they are to be written and loaded (small ones first).
    virtual std::vector<ArrayShape> arrays() const = 0;
    // Copies bytes [offset, offset + out.size()) of the array.
    virtual void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const = 0;
    virtual Calibration calibration() const = 0;
    // Returns the options with every 0 resolved to a number, as they are stored with the index.
    virtual ParameterList effective_options() const = 0;
    // Returns the way to build without run(), from rows as they come (methods/row_stream.h), which lives as long as the
    // builder. Null: the builder gets its rows gathered.
    virtual RowStream* row_stream() { return nullptr; }
};

// Work beside a search, done once: by a searcher while it waits for a device, otherwise by the caller of the search.
class OverlappedWork
{
public:
    explicit OverlappedWork(std::function<void()> work) : work_(std::move(work)) {}
    bool begun() const { return begun_; }
    void run()
    {
        if (!std::exchange(begun_, true)) work_();
    }

private:
    std::function<void()> work_;
    bool begun_ = false;
};

// A batch of queries of one index with equal settings. Queries of a cosine index are normalised already.
struct SearchBatch {
    std::span<const float> queries;  // [count][dimensions], where rows are dense
    RowView lists;                   // [count], where rows are lists
    std::size_t count = 0;
    std::uint32_t k = 0;
    ParameterList settings;   // of the method (probes, refine_factor); 0 or absent: derived from `effort`
    std::int64_t effort = 0;  // a value of the schedule of the calibration; 0: none
    RowBitmap dead;
    std::uint64_t dead_version = 0;  // of `dead`, from new_bitmap_version(): equal versions have equal bits; 0: none
    // Of each query, the filter that a row must pass to be found; only for searchers that take filters. Empty: all rows
    // pass.
    std::span<const RowFilter> filters;
    // The caller ranks the rows: they may come in the order of proposal, and be fewer than k where the settings look at
    // fewer.
    bool proposals_will_do = false;
    // Of each query, the largest operator's distance of interest, where only proposals are wanted. A searcher may leave
    // out rows that are certainly farther. Empty: no limit.
    std::span<const double> reach;
    // Of each query, the lists that it probes. Searchers of lists fill an empty entry and use a filled one, because the
    // parts of an index share its lists. Null: lists are not shared.
    std::vector<std::vector<Candidate>>* probed = nullptr;
    // Work that a searcher runs while it waits for a device; it may throw. Null: none.
    OverlappedWork* overlapped_work = nullptr;
    const CancelToken* cancel = nullptr;
    // Whether a row can't be found by a query: it is dead or fails the filter.
    bool leaves_out(std::size_t query, std::uint64_t row) const
    {
        return bit_is_set(dead, row) || (!filters.empty() && !filters[query].passes(row));
    }
    // Throws Cancelled where the search was cancelled.
    void check_cancel() const
    {
        if (cancel != nullptr) cancel->check();
    }
};

// Calls body(q) for each query of the batch on the threads of the pool. Throws Cancelled.
template <class Body>
void for_queries(const SearchBatch& batch, ThreadPool& pool, const Body& body)
{
    pool.parallel_for(batch.count, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            batch.check_cancel();
            body(q);
        }
    });
}

// A found row. result_kind() defines the meaning of the distance.
struct RowResult {
    double distance;
    std::uint32_t row;
};

// Before the first row, in the order of continuations.
inline constexpr RowResult before_all{-std::numeric_limits<double>::infinity(), 0};

// Numbers of some rows.
using RowList = std::span<const std::uint32_t>;

// [rung][query]
using RungResults = std::vector<std::vector<std::vector<RowResult>>>;

// Statistics of documents, for the weights of the terms of a query.
struct TermCounts {
    std::uint64_t rows = 0;
    std::uint64_t length = 0;             // of all rows
    std::vector<std::uint64_t> of_terms;  // rows that have each of the terms
};

// The memory in which a searcher keeps its rows.
struct Residence {
    std::int32_t gpu = -1;           // number of the device; -1: the CPU serves
    bool split = false;              // the vectors that rank candidates lie in page-locked host memory
    std::uint64_t device_bytes = 0;  // of memory_bytes(); the rest is the host's
};

class Searcher
{
public:
    virtual ~Searcher() = default;
    // Loads a piece of an array. Arrays come in the order of the shape list, each byte once. Thread-safe for different
    // pieces of one array.
    virtual void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
    virtual void finish_load(ThreadPool& pool) = 0;
    virtual std::uint64_t memory_bytes() const = 0;
    virtual Residence residence() const { return {}; }
    virtual ResultKind result_kind() const = 0;
    // Whether values are distances, or estimates or bounds of distances. Otherwise they only order the rows of this
    // index, and are not comparable with distances of other rows.
    virtual bool values_are_distances() const { return true; }
    // Returns the largest difference between the operator's distance and a lower bound, for a dense query.
    virtual double bound_width(const float*) const { return 0; }

    // Whether compare_rows() compares rows outside the index's arrays, such as delta rows. Otherwise rows are dense,
    // and the engine compares them by the metric.
    virtual bool compares_rows() const { return false; }
    // out[i] = the distance of row i to the query, which is one row, on the scale of the values of search().
    // Thread-safe, const.
    virtual void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const;

    // Loads rows without writes: rows [first, first + count) of another searcher become the rows of this one from `to`
    // on; arguments: the other searcher, first, count, to. Returns false where its device does not hold them; then the
    // caller writes them.
    virtual bool copy_rows(const Searcher&, std::uint64_t, std::uint64_t, std::uint64_t) { return false; }

    // results[i] gets at most k rows of query i, nearest first, ties by row; none dead. Thread-safe, const.
    // `pool` may be used for fan-out; a pool of one thread means: run on the caller.
    virtual void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                        ThreadPool& pool) const = 0;

    // Searches of several rungs: results[rung][i] is the result of search() with the rung's k and effort, or a better
    // one from rows that earlier rungs have seen. The results of a rung do not depend on later rungs.
    virtual void search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                              ThreadPool& pool) const;

    // Returns the exact answer by the best vectors that the index keeps, for continuations: at most k rows strictly
    // after (after_distance, after_row) in order of (distance, row); after_distance = -infinity starts at the front.
    virtual void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                              std::vector<RowResult>& results, ThreadPool& pool) const = 0;

    // Whether search() misses no row, whatever is dead.
    virtual bool finds_all() const { return false; }
    // Whether search() takes batches with filters. With a filter it may find fewer than k rows though more pass, where
    // finding them would take longer than comparing all that pass. Otherwise the caller searches the queries of each
    // predicate by themselves, with the rows that fail among the dead.
    virtual bool takes_filters() const { return false; }
    // Estimates the float operations of search() for a batch of one query that this share of the rows pass.
    virtual double filtered_cost(const SearchBatch& batch, double pass_rate) const
    {
        return search_cost(batch) / std::max(pass_rate, 1e-9);
    }
    // Returns the effort by which search() finds as many of the rows that pass as it finds of all by `effort`, where it
    // takes no filters and this share of the rows pass. Efforts that count live rows stay as they are.
    virtual std::int64_t filtered_effort(std::int64_t effort, double) const { return effort; }
    // Whether search_among() compares certain rows alone. Otherwise the caller has search_exact() do it, with all
    // others among the dead.
    virtual bool compares_certain_rows() const { return false; }
    // results[i] gets the nearest of rows[i], as search_exact() orders them: at most k strictly after `after`, none
    // dead. The rows of a query are in any order, each once.
    virtual void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                              std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const;

    // Counts the rows of each term (protocol/bag_rows.h), of indexes whose rows are bags. Dead rows count until a
    // merge.
    virtual TermCounts count_terms(std::span<const std::uint64_t>) const { throw BadRequest("the rows have no terms"); }

    // Estimates the float operations of search(), to choose between the caller's thread and fan-out.
    virtual double search_cost(const SearchBatch& batch) const = 0;

    // Returns the settings that a search of the batch would use (probes, refine_factor ...), for EXPLAIN and the info
    // view.
    virtual ParameterList resolved_settings(const SearchBatch& batch) const = 0;
};

// Returns the batch with the k and the effort of each rung.
std::vector<SearchBatch> batches_of(const SearchBatch& batch, std::span<const SearchRung> rungs);

struct MethodFactory {
    Method method;
    // Throws BadRequest for contradictory options.
    std::unique_ptr<Builder> (*make_builder)(const IndexShape& shape, const ParameterList& options);
    std::unique_ptr<Searcher> (*make_searcher)(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays);
    // Encodes rows for an existing index with these effective options. The CPU's builder serves every device.
    std::unique_ptr<Builder> (*make_merge_builder)(const IndexShape& shape, const ParameterList& options) = nullptr;
    // Returns the options of a part: an index of delta rows beside an index of this shape and these effective options,
    // until a merge. The merge builder makes the part, from the index's array `part_array` where there is one. The part
    // is loaded as an index of its own and searched with the settings of the index. `array`: the shape of `part_array`;
    // null where the part has none. Null: delta rows are not indexed.
    ParameterList (*part_options)(const IndexShape& shape, const ParameterList& options,
                                  const ArrayShape* array) = nullptr;
    const char* part_array = nullptr;
    // Measures the recall of an existing index with these effective options by its stored rows, which are given; with
    // the options of protocol/drift.h, the drift of new rows instead. The CPU's builder serves every device. Null:
    // recall is measured by builds and merges alone.
    std::unique_ptr<Builder> (*make_calibrator)(const IndexShape& shape, const ParameterList& options) = nullptr;
    // On a device: its exact method, where that searches delta rows beside an index of this method. Null: part_options
    // applies.
    const MethodFactory* exact_parts = nullptr;
    // Rows of these elements have such parts; those of others are indexed by the complete method.
    ElementSet part_elements = ElementSet::all();
    // On a device: whether it serves an index of this shape. Null: it serves those of vectors. The CPU serves the
    // others.
    bool (*serves)(const IndexShape& shape) = nullptr;
};

// Whether a device's method serves an index of this shape.
inline bool device_serves(const MethodFactory& method, const IndexShape& shape)
{
    if (method.serves != nullptr) return method.serves(shape);
    return shape.element != ElementType::bit && !is_list(shape.element);
}

// Returns null for a method that this build does not have.
const MethodFactory* find_method(Method method);

#define PGWARP_DECLARE_METHOD(name, number, on_device) const MethodFactory& name##_method();
PGWARP_METHODS(PGWARP_DECLARE_METHOD)
#undef PGWARP_DECLARE_METHOD

// Registers a method of the program itself, such as a test's, for this object's lifetime. Not thread-safe: it begins
// before the engine and ends after it.
class RegisteredMethod
{
public:
    RegisteredMethod(const MethodFactory& method, const MethodDescription& description);
    ~RegisteredMethod();
    RegisteredMethod(const RegisteredMethod&) = delete;
    RegisteredMethod& operator=(const RegisteredMethod&) = delete;

private:
    const MethodFactory& method_;
    const MethodDescription& description_;
};

}  // namespace pgwarp
