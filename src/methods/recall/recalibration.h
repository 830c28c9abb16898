// Measuring the recall of an index that exists, by its stored rows, which are streamed once past a sample of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/recall/truth.h"
#include "methods/rows/row_pieces.h"

namespace pgwarp
{

// The queries of a calibration, which are rows of the index.
struct CalibrationSample {
    const std::vector<std::uint32_t>& rows;
    std::span<const float> queries;                        // these rows
    const std::vector<std::vector<std::uint32_t>>& truth;  // their nearest rows, of calibration_truth()
    RowBitmap dead = {};                                   // rows that searches leave out
};

// A builder that takes arrays of its method, the arrays of protocol/calibration.h, and then the stored rows. Pieces of
// the rows come in order, are compared with the sample as they come, and are not kept. run() takes no rows and makes
// the curve as a build does. All functions throw BadRequest for arrays that do not fit.
class Recalibrator : public Builder
{
public:
    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) final;
    void run(RowBuffer& none, const BuildProgress& progress, ThreadPool& pool) final;
    std::vector<ArrayShape> arrays() const final { return {}; }
    void read(const std::string&, std::uint64_t, std::span<std::byte>) const final
    {
        throw BadRequest("a calibration makes no arrays");
    }
    Calibration calibration() const final { return calibration_; }

protected:
    Recalibrator(Metric metric, std::size_t dimensions) : metric_(metric), dimensions_(dimensions) {}

    // The array of stored rows. The number of rows is known when their first piece comes.
    virtual ArrayShape stored() const = 0;
    // Takes a piece of another array of the method; returns false for one that the method does not know.
    virtual bool take(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
    // Checks the arrays of take(). Called once, before the first row.
    virtual void check() = 0;
    // The most rows that a calibration uses as queries.
    virtual std::size_t wanted_queries() const = 0;
    // Writes the floats of a row out of its stored form.
    virtual void decode(std::size_t row, const std::byte* stored, float* out) const = 0;
    // Measures the curve; may choose options of searches by it, which effective_options() then has.
    virtual Calibration measure(const CalibrationSample& sample, const BuildProgress& progress, ThreadPool& pool) = 0;

    static constexpr std::uint64_t most_rows = std::numeric_limits<std::uint32_t>::max();

private:
    std::size_t row_bytes() const { return dimensions_ * array_type_bytes(stored().type); }
    void begin_rows();
    void choose_queries();
    void compare(std::size_t first, std::size_t count, const std::byte* rows);

    Metric metric_;
    std::size_t dimensions_;
    std::vector<std::uint64_t> dead_;
    std::vector<std::uint32_t> sample_;  // rows that are queries
    std::vector<std::byte> given_;       // their stored form
    std::vector<float> queries_;         // the same decoded
    std::optional<NearestOfQueries> nearest_;
    RowPieces rows_given_;
    Calibration calibration_;
};

}  // namespace pgwarp
