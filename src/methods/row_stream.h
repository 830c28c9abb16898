// Builds that do not keep rows as they came: they are trained on a sample, and take of each row, as it comes, only what
// the index stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "methods/method.h"

namespace pgwarp
{

// A Builder whose row_stream() is one may build an index without run(): by train(), append() for all rows in chunks of
// any size and order, and finish(). Its arrays are then read as after run(). The same rows and the same sample give the
// same arrays and calibration in any order of the chunks.
class RowStream
{
public:
    virtual ~RowStream() = default;
    // Returns the number of sampled rows that train() wants for an index of about `rows` rows; 0: where these are few,
    // or the options keep them whole, run() builds from all rows.
    virtual std::size_t wanted_sample(std::uint64_t rows) const = 0;
    // Trains on a sample of the rows to come, in tid order and spread over all of them. Dense rows hold no NaN and are
    // normalised if the metric is cosine. About `rows` rows come. A row of the sample need not come.
    // Throws std::bad_alloc and Cancelled; then run() may build from all rows.
    virtual void train(RowBuffer& sample, std::uint64_t rows, const BuildProgress& progress, ThreadPool& pool) = 0;
    // Takes rows [tids.size()][dimensions], numbered from `first` on; no number comes twice, and in the end none is
    // left out. May overwrite `rows`. Thread-safe. Throws Cancelled.
    virtual void append(std::size_t first, std::span<const Tid> tids, std::span<float> rows, const CancelToken* cancel,
                        ThreadPool& pool) = 0;
    // Makes the arrays of all rows and calibrates. order[i]: the number of the row at place i of the index.
    virtual void finish(std::span<const std::uint32_t> order, const BuildProgress& progress, ThreadPool& pool) = 0;
};

}  // namespace pgwarp
