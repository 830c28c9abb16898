// Measures the recall of an index of vectors by its stored rows, streamed once and signed again.
#include <cstring>
#include <optional>

#include "methods/matchcount/calibration_arrays.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/vector_calibration.h"
#include "methods/rows/row_pieces.h"
#include "protocol/calibration.h"

namespace pgwarp::matchcount
{

namespace
{

class VectorCalibrator : public Builder
{
public:
    VectorCalibrator(const IndexShape& shape, const ParameterList& options)
        : hashes_(hash_form(shape, options), shape.dimensions)
    {
    }

    void give(const ArrayShape& array, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void run(RowBuffer& none, const BuildProgress&, ThreadPool&) override
    {
        if (none.size() > 0) throw BadRequest("a calibration takes its rows as an array");
        if (!recall_ || rows_given_.bytes() != rows_ * row_bytes()) throw BadRequest("the rows were not given whole");
        calibration_ = recall_->curve();
    }
    std::vector<ArrayShape> arrays() const override { return {}; }
    void read(const std::string&, std::uint64_t, std::span<std::byte>) const override
    {
        throw BadRequest("a calibration makes no arrays");
    }
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return {}; }

private:
    std::size_t row_bytes() const { return hashes_.dimensions() * sizeof(float); }
    void begin_rows(const ArrayShape& array);
    void compare(std::size_t first, std::size_t count, const std::byte* rows);

    VectorHashes hashes_;
    std::uint64_t given_ = 0;            // bytes of the functions
    std::vector<std::uint64_t> dead_;    // bitmap
    std::vector<std::uint32_t> sample_;  // rows that are queries
    std::vector<float> queries_;
    std::optional<VectorRecall> recall_;
    std::size_t rows_ = 0;
    RowPieces rows_given_;
    Calibration calibration_;
};

void VectorCalibrator::give(const ArrayShape& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    const std::string name(array.name, ::strnlen(array.name, sizeof(array.name)));
    if (name == array_vectors) {
        if (!recall_) begin_rows(array);
        require_array(std::span(&array, 1), array_vectors, ArrayType::f32, rows_, hashes_.dimensions());
        if (offset != rows_given_.bytes() || bytes.size() > array.bytes() - offset)
            throw BadRequest("rows out of order");
        rows_given_.give(bytes, row_bytes(), [this](std::size_t first, std::size_t count, const std::byte* given) {
            compare(first, count, given);
        });
        return;
    }
    if (recall_) throw BadRequest("an array after the rows");
    if (name == array_hashes) {
        const ArrayShape expected = hashes_.shape();
        require_array(std::span(&array, 1), array_hashes, expected.type, expected.rows, expected.width);
        write_piece(hashes_.parameters(), offset, bytes);
        given_ += bytes.size();
    } else if (name == array_calib_dead) {
        take_piece(dead_, array, most_bitmap_bytes, offset, bytes);
    } else if (name == array_calib_row) {
        take_piece(sample_, array, most_calibration_queries * sizeof(std::uint32_t), offset, bytes);
    } else if (name == array_calib_query) {
        take_piece(queries_, array, most_calibration_queries * row_bytes(), offset, bytes);
    } else {
        throw BadRequest("an array that a calibration has no use for");
    }
}

// Checks the arrays that rows are compared by, and takes an even part of the sample.
void VectorCalibrator::begin_rows(const ArrayShape& array)
{
    rows_ = array.rows;
    if (given_ != hashes_.shape().bytes()) throw BadRequest("the hash functions were not given whole");
    if (!dead_.empty() && dead_.size() != (rows_ + 63) / 64) throw BadRequest("tombstones of another number of rows");
    if (sample_.empty() || queries_.size() != sample_.size() * hashes_.dimensions())
        throw BadRequest("a sample without its rows");
    const std::size_t wanted = std::min(sample_.size(), most_sampled_queries);
    std::vector<std::uint32_t> own;
    std::vector<float> vectors;
    for (std::size_t i = 0; i < wanted; ++i) {
        const std::size_t from = i * sample_.size() / wanted;
        own.push_back(sample_[from]);
        const float* const vector = queries_.data() + from * hashes_.dimensions();
        vectors.insert(vectors.end(), vector, vector + hashes_.dimensions());
    }
    recall_.emplace(hashes_, std::move(own), std::move(vectors));
}

void VectorCalibrator::compare(std::size_t first, std::size_t count, const std::byte* rows)
{
    std::vector<float> vectors(count * hashes_.dimensions());
    std::memcpy(vectors.data(), rows, count * row_bytes());
    std::vector<std::uint8_t> signatures(count * hashes_.signature_bytes());
    hashes_.sign(vectors, signatures.data(), caller_alone(), nullptr);
    recall_->add(vectors.data(), signatures.data(), count, first, dead_, caller_alone());
}

}  // namespace

std::unique_ptr<Builder> make_vector_calibrator(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<VectorCalibrator>(shape, options);
}

}  // namespace pgwarp::matchcount
