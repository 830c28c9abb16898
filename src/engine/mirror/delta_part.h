// Fresh rows indexed inside a mirror: where comparing all rows of the delta logs would cost too much of a search, they
// are put into parts: small indexes of the method's own, with the index's lists where it has any, or on a device exact
// ones. A part proposes; values are those of the logs' vectors. Parts are cache: they are made in the background, never
// stored, and end with their mirror.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/mirror/delta.h"
#include "methods/method.h"
#include "protocol/messages.h"

namespace pgwarp
{

// Entries [begin, end) of a log.
struct LogSpan {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t rows() const { return end - begin; }
};
using LogSpans = std::array<LogSpan, delta_log_count>;
using LogViews = std::array<DeltaView, delta_log_count>;

struct DeltaPart {
    struct Row {
        const float* vector;  // in a chunk of its log; null of a list
        std::uint64_t ordinal;
        Tid tid;
    };
    LogSpans spans;
    std::vector<Row> rows;             // log after log, in order: ties go by number here as by ordinal there
    std::vector<RowView> list_rows;    // of the rows, where they are lists: each in a chunk of its log
    std::vector<std::uint32_t> lists;  // of the rows, where the method has lists
    std::unique_ptr<Searcher> searcher;
    bool proposes_values = false;  // the operator's distances, or lower bounds of them
    bool on_device = false;        // which searches it while the host does something else

    std::uint64_t memory_bytes() const;
    // Bit i = row i is dead; empty when none is. `entries`: sorted positions of dead entries, per log.
    std::vector<std::uint64_t> dead_rows(const std::array<std::vector<std::uint64_t>, delta_log_count>& entries) const;
};
using DeltaPartPtr = std::shared_ptr<const DeltaPart>;

// How the parts of an index are made; filled while its mirror is loaded.
struct PartRecipe {
    // method: of the mirror's device; null options there: the index has no parts.
    PartRecipe(const IndexShape& shape, const ParameterList& options, std::uint64_t rows,
               std::span<const ArrayShape> arrays, const MethodFactory& method);

    bool possible() const { return method != nullptr; }
    bool takes(const ArrayShape& array) const;

    IndexShape shape;
    ParameterList options;
    const MethodFactory* method;     // makes the searchers
    bool exact_on_device;            // of the rows as they are
    std::vector<ArrayShape> shared;  // what parts take from the index: none or one array
    std::vector<std::byte> shared_bytes;
};

// Which entries the next part is to hold, when all up to the logs' ends are to be in parts, and how many of the present
// parts (largest first) remain beside it: small ones go into it, so that a few are enough however many rows there are.
struct PartPlan {
    LogSpans spans;
    std::size_t kept = 0;
    std::uint64_t rows = 0;
};
PartPlan plan_part(const PartRecipe& recipe, const LogViews& logs, const std::vector<DeltaPartPtr>& parts);

// Bytes that the part of a plan will take, about.
std::uint64_t part_bytes(const PartRecipe& recipe, const LogViews& logs, const PartPlan& plan);

// The lists of rows that are in `parts` are taken from there. Throws std::bad_alloc, or what searchers throw.
DeltaPartPtr make_part(const PartRecipe& recipe, const LogViews& logs, const PartPlan& plan,
                       std::span<const DeltaPartPtr> parts, ThreadPool& pool);

}  // namespace pgwarp
