// What a method gives the engine: a Builder that turns rows into stored arrays, and a Searcher over loaded arrays.
// Methods know nothing of PostgreSQL, sockets or residency. A new method adds a folder and a row to the registry,
// protocol/methods.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "methods/description.h"
#include "methods/errors.h"
#include "methods/row_bitmap.h"
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

// Bit i set = row i is dead (tombstoned). Empty = none are.
using RowBitmap = std::span<const std::uint64_t>;
inline bool bit_is_set(RowBitmap bitmap, std::uint64_t i)
{
    return !bitmap.empty() && ((bitmap[i / 64] >> (i % 64)) & 1U) != 0;
}

// Whether the rows that a build gets are floats of halves: unit vectors are not.
inline bool are_halves(const IndexShape& shape)
{
    return shape.element == ElementType::float16 && shape.metric != static_cast<std::uint8_t>(Metric::cosine);
}

struct BuildProgress {
    // phase is a static string ("training lists", "assigning rows", ...); called at least every 100 ms of work.
    std::function<void(const char* phase, std::uint64_t done, std::uint64_t total)> report;
    const CancelToken* cancel = nullptr;
};

class Builder
{
public:
    virtual ~Builder() = default;
    // For builds over an index that exists, before run(): a piece of an array of it.
    virtual void give(const ArrayShape&, std::uint64_t, std::span<const std::byte>)
    {
        throw BadRequest("this build takes no arrays");
    }
    // Trains, encodes, calibrates. `rows` is sorted by tid; dense rows are normalised already if the metric is cosine
    // (but where keeps_halves()), and hold no NaN; lists are as lists_fault() wants them.
    // It stays alive and is owned by the caller; the builder may compact it. Zero rows are legal.
    virtual void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) = 0;
    // After run(): all arrays in the order in which they are to be written and loaded (small ones first).
    virtual std::vector<ArrayShape> arrays() const = 0;
    // Copies bytes [offset, offset + out.size()) of the array.
    virtual void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const = 0;
    virtual Calibration calibration() const = 0;
    // The options as they came out (lists = 0 became a number, ...): stored with the index.
    virtual ParameterList effective_options() const = 0;
};

// Work that somebody has to do beside a search, once: by a searcher that waits for a device, or else by who gave it.
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
    ParameterList settings;   // method's own (probes, refine_factor; 0 or absent = from effort) ...
    std::int64_t effort = 0;  // ... and the position on the schedule that calibration chose
    RowBitmap dead;
    std::uint64_t dead_version = 0;  // of `dead`, by new_bitmap_version(): equal ones have equal bits. 0: it has none
    // The caller ranks the rows: they may come in the order in which they are proposed, and what the settings look at
    // is enough, though it may hold fewer than k.
    bool proposals_will_do = false;
    // Of each query, how far away a row may be to be of interest, as the operator's distance, where only proposals are
    // wanted. Searchers that know it leave out what is farther for certain.
    std::span<const double> reach;
    // Of each query, the lists that it probes. Searchers that know it fill what is empty, and take what is not: parts
    // of an index have its lists.
    std::vector<std::vector<Candidate>>* probed = nullptr;
    // What searchers that wait for a device do first; it may throw. Null: nothing.
    OverlappedWork* overlapped_work = nullptr;
    const CancelToken* cancel = nullptr;
};

// A found row: row number and value. Value meaning: result_kind().
struct RowResult {
    double distance;
    std::uint32_t row;
};

// [rung][query]
using RungResults = std::vector<std::vector<std::vector<RowResult>>>;

// Where a searcher keeps what it searches.
struct Residence {
    std::int32_t gpu = -1;           // number of the device; -1: the CPU serves
    bool split = false;              // the vectors that rank candidates lie in page-locked host memory
    std::uint64_t device_bytes = 0;  // of memory_bytes(); the rest is the host's
};

class Searcher
{
public:
    virtual ~Searcher() = default;
    // Loading: every array of the shape list, in that order, in pieces, each byte once. Thread-safe for different
    // pieces of one array.
    virtual void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
    virtual void finish_load(ThreadPool& pool) = 0;
    virtual std::uint64_t memory_bytes() const = 0;
    virtual Residence residence() const { return {}; }
    virtual ResultKind result_kind() const = 0;
    // Whether values are distances, or estimates or bounds of them. Else they order rows of the index alone, and say
    // nothing beside the distance of another row.
    virtual bool values_are_distances() const { return true; }
    // Of lower bounds for this dense query: the operator's distance is at most so much more than the bound.
    virtual double bound_width(const float*) const { return 0; }

    // Whether the method itself compares rows that lie in no array of its, as delta rows do. Else rows are dense, and
    // the engine compares them by the metric.
    virtual bool compares_rows() const { return false; }
    // out[i] becomes the distance of row i from the query, which is one row: a value that stands in one order with
    // those of search(). Thread-safe, const.
    virtual void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const;

    // Loading, in place of writes: rows [first, first + count) of another searcher become rows from `to` on of this
    // one. False where they are not at hand on its device: then they are to be written.
    virtual bool copy_rows(const Searcher&, std::uint64_t, std::uint64_t, std::uint64_t) { return false; }

    // results[i] gets at most k rows of query i, nearest first, ties by row; none dead. Thread-safe, const.
    // `pool` may be used for fan-out; a pool of one thread means: run on the caller.
    virtual void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                        ThreadPool& pool) const = 0;

    // The searches of several rungs, each as search() with its k and effort in place of the batch's, or as if what an
    // earlier rung has seen were known: results[rung][i]. Of the first rungs the results are the same whatever rungs
    // follow.
    virtual void search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                              ThreadPool& pool) const;

    // The exact answer by the best vectors that the index keeps, for continuations: at most k rows strictly after
    // (after_distance, after_row) in order of (distance, row); after_distance = -infinity starts at the front.
    virtual void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                              std::vector<RowResult>& results, ThreadPool& pool) const = 0;

    // A guess of what search() costs in float operations for one query, to decide inline against fan-out.
    virtual double search_cost(const SearchBatch& batch) const = 0;

    // Name and value of the settings that a batch would use (probes, refine_factor ...), for EXPLAIN and the info view.
    virtual ParameterList resolved_settings(const SearchBatch& batch) const = 0;
};

struct MethodFactory {
    Method method;
    // Throws BadRequest for options that make no sense together.
    std::unique_ptr<Builder> (*make_builder)(const IndexShape& shape, const ParameterList& options);
    std::unique_ptr<Searcher> (*make_searcher)(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays);
    // Encodes rows for an index that exists and has these (effective) options. The CPU's serves every device.
    std::unique_ptr<Builder> (*make_merge_builder)(const IndexShape& shape, const ParameterList& options) = nullptr;
    // How delta rows are indexed beside an index of this shape and these (effective) options, until a merge: what the
    // merge builder makes with the options that this returns, and with the index's array `part_array` where there is
    // one, is loaded and searched as an index of its own, with the settings of the index. `array` is the shape of that
    // array; null where the part has none. Null: delta rows are not indexed.
    ParameterList (*part_options)(const IndexShape& shape, const ParameterList& options,
                                  const ArrayShape* array) = nullptr;
    const char* part_array = nullptr;
    // Measures the recall of an index that exists and has these (effective) options, by its rows as it keeps them,
    // which are given; or, with other options, how far new rows have drifted from them (protocol/drift.h). The CPU's
    // serves every device. Null: its recall needs no measuring, or can't be measured so.
    std::unique_ptr<Builder> (*make_calibrator)(const IndexShape& shape, const ParameterList& options) = nullptr;
    // Of a device: its exact method, where that searches delta rows beside an index of this one. Null: part_options
    // holds.
    const MethodFactory* exact_parts = nullptr;
    // Rows are lists, which its searchers compare themselves; else dense.
    bool takes_lists = false;
};

// nullptr when this build doesn't know the method.
const MethodFactory* find_method(Method method);

#define PGWARP_DECLARE_METHOD(name, number, on_device) const MethodFactory& name##_method();
PGWARP_METHODS(PGWARP_DECLARE_METHOD)
#undef PGWARP_DECLARE_METHOD

// Adds a method that a program brings along, as tests do, for as long as the returned object lives. Not thread-safe:
// before an engine begins, and after it has ended.
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
