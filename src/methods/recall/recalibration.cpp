// Streams stored rows past a sample of queries, then makes the curve as a build does.
#include "methods/recall/recalibration.h"

#include <algorithm>

#include "methods/given_arrays.h"
#include "numeric/distance.h"
#include "protocol/calibration.h"

namespace pgwarp
{

void Recalibrator::give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (const ArrayShape rows = stored(); is_named(shape, rows.name)) {
        require_array(std::span(&shape, 1), rows.name, rows.type, rows.rows, dimensions_);
        if (offset != rows_given_.bytes() || bytes.size() > shape.bytes() - offset)
            throw BadRequest("rows out of order");
        if (!nearest_) begin_rows();
        rows_given_.give(bytes, row_bytes(), [this](std::size_t first, std::size_t count, const std::byte* given) {
            compare(first, count, given);
        });
        return;
    }
    if (nearest_) throw BadRequest("an array after the rows");
    if (is_named(shape, array_calib_dead)) {
        take_piece(dead_, shape, ArrayType::u64, 1, most_rows / 64 + 1, offset, bytes);
    } else if (is_named(shape, array_calib_row)) {
        take_piece(sample_, shape, ArrayType::u32, 1, most_calibration_queries, offset, bytes);
    } else if (is_named(shape, array_calib_query)) {
        take_piece(given_, shape, ArrayType::u8, row_bytes(), most_calibration_queries, offset, bytes);
    } else if (!take(shape, offset, bytes)) {
        throw BadRequest("an array that the index has no use for");
    }
}

void Recalibrator::begin_rows()
{
    check();
    const std::size_t rows = stored().rows;
    if (!dead_.empty() && dead_.size() != (rows + 63) / 64) throw BadRequest("tombstones of another number of rows");
    if (sample_.empty() || given_.size() != sample_.size() * row_bytes()) throw BadRequest("a sample without its rows");
    for (const std::uint32_t row : sample_) {
        if (row >= rows) throw BadRequest("a sampled row that does not exist");
    }
    choose_queries();
}

// Takes an even part of the sample.
void Recalibrator::choose_queries()
{
    const std::size_t given = sample_.size();
    const std::size_t wanted = std::min(given, wanted_queries());
    queries_.resize(wanted * dimensions_);
    for (std::size_t i = 0; i < wanted; ++i) {
        const std::size_t from = i * given / wanted;
        sample_[i] = sample_[from];
        decode(sample_[i], given_.data() + from * row_bytes(), queries_.data() + i * dimensions_);
    }
    sample_.resize(wanted);
    given_ = {};
    nearest_.emplace(metric_, queries_, dimensions_, std::min<std::size_t>(Calibration::ks[3] + 1, stored().rows));
}

void Recalibrator::compare(std::size_t first, std::size_t count, const std::byte* rows)
{
    std::vector<float> vectors(count * dimensions_);
    for (std::size_t i = 0; i < count; ++i) decode(first + i, rows + i * row_bytes(), vectors.data() + i * dimensions_);
    std::vector<float> norms(count);
    squared_norms(vectors.data(), count, dimensions_, norms.data());
    nearest_->compare(vectors.data(), norms.data(), count, first, dead_);
}

void Recalibrator::run(RowBuffer& none, const BuildProgress& progress, ThreadPool& pool)
{
    if (none.size() > 0) throw BadRequest("a calibration takes its rows as an array");
    if (!nearest_ || rows_given_.bytes() != stored().bytes()) throw BadRequest("the rows were not given whole");
    std::vector<std::vector<std::uint32_t>> truth(sample_.size());
    for (std::size_t q = 0; q < sample_.size(); ++q) {
        for (const Candidate& candidate : nearest_->take(q)) {
            if (candidate.row != sample_[q] && truth[q].size() < Calibration::ks[3]) truth[q].push_back(candidate.row);
        }
    }
    calibration_ = measure({sample_, queries_, truth, dead_}, progress, pool);
}

}  // namespace pgwarp
