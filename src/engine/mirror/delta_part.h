// Parts: small indexes of delta rows within a mirror, made where comparing all delta rows one by one costs too much. A
// part is of the method of the index, with the lists of the index where it has any, or, on a device, exact. A part
// proposes rows; the vectors in the logs give their values. Parts are cache: they are made in the background, never
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
    LogSpans spans;
    std::vector<DeltaEntry> rows;      // log after log, by position: so ties go by number as by ordinal
    std::vector<RowView> list_rows;    // the rows where they are lists, each in a chunk of its log
    std::vector<std::uint32_t> lists;  // the list of each row, where the method has lists
    std::unique_ptr<Searcher> searcher;
    bool proposes_values = false;  // proposals have the operator's distances, or lower bounds
    bool on_device = false;        // a device searches it while the host does other work

    std::uint64_t memory_bytes() const;
    // Bit i = row i is dead; empty when none is. `entries`: sorted positions of dead entries, per log.
    std::vector<std::uint64_t> dead_rows(const std::array<std::vector<std::uint64_t>, delta_log_count>& entries) const;
};
using DeltaPartPtr = std::shared_ptr<const DeltaPart>;

// How the parts of an index are made; filled while its mirror is loaded.
struct PartRecipe {
    // method: of the device of the mirror. Without options of parts, or exact parts on a device, the index has no
    // parts.
    PartRecipe(const IndexShape& shape, const ParameterList& options, std::uint64_t rows,
               std::span<const ArrayShape> arrays, const MethodFactory& method);

    bool possible() const { return method != nullptr; }
    bool takes(const ArrayShape& array) const;

    IndexShape shape;
    ParameterList options;
    const MethodFactory* method;     // makes the searchers; null: no parts
    bool exact_on_device;            // parts are exact, on a device
    std::vector<ArrayShape> shared;  // the array that parts take from the index, if any
    std::vector<std::byte> shared_bytes;
};

// The entries of the next part, which reach to the ends of the logs, and the number of present parts (largest first)
// that remain beside it. The part takes small ones in, so that a few parts hold any number of rows.
struct PartPlan {
    LogSpans spans;
    std::size_t kept = 0;
    std::uint64_t rows = 0;
};
PartPlan plan_part(const PartRecipe& recipe, const LogViews& logs, const std::vector<DeltaPartPtr>& parts);

// Estimated bytes of the planned part.
std::uint64_t part_bytes(const PartRecipe& recipe, const LogViews& logs, const PartPlan& plan);

// Makes the planned part; `parts` are the present ones, which know the lists of their rows. Throws std::bad_alloc, or
// exceptions of builder and searcher.
DeltaPartPtr make_part(const PartRecipe& recipe, const LogViews& logs, const PartPlan& plan,
                       std::span<const DeltaPartPtr> parts, ThreadPool& pool);

}  // namespace pgwarp
