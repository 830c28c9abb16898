#include "methods/ivfadc/calibrator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "methods/arrays.h"
#include "methods/calibrate.h"
#include "methods/ivfadc/build_samples.h"
#include "methods/ivfadc/calibration.h"
#include "numeric/distance.h"
#include "numeric/half_codec.h"
#include "numeric/top_k.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t tile_rows = 512;
constexpr std::size_t tile_queries = 128;

class IvfadcCalibrator : public Builder
{
public:
    IvfadcCalibrator(const IndexShape& shape, const ParameterList& options)
        : metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          options_(IvfOptions::resolve(options, std::numeric_limits<std::uint32_t>::max(), dimensions_)),
          centroids_(options_.lists * dimensions_)
    {
        if (metric_ == Metric::l1) throw BadRequest("ivfadc knows no L1 distance");
        if (!options_.keeps_full() && !options_.keeps_half() && !options_.byte_codes)
            throw BadRequest("the index keeps nothing that recall could be measured by");
        half_codec_.mean.resize(dimensions_);
    }

    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override;
    std::vector<ArrayShape> arrays() const override { return {}; }
    void read(const std::string&, std::uint64_t, std::span<std::byte>) const override
    {
        throw BadRequest("a calibration makes no arrays");
    }
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return options_.as_parameters(); }

private:
    const char* rows_array() const
    {
        return options_.keeps_full() ? array_vectors : options_.keeps_half() ? array_half : array_codes;
    }
    ArrayType rows_type() const
    {
        return options_.keeps_full() ? ArrayType::f32 : options_.keeps_half() ? ArrayType::f16 : ArrayType::u8;
    }
    bool needs_scales() const { return !options_.keeps_full() && !options_.keeps_half(); }
    std::size_t row_bytes() const { return dimensions_ * array_type_bytes(rows_type()); }
    std::size_t rows() const { return list_of_row_.size(); }

    void give_small(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes);
    void give_rows(std::uint64_t offset, std::span<const std::byte> bytes);
    void begin_rows();
    void choose_queries();
    void decode(std::size_t row, const std::byte* stored, float* out) const;
    void compare(std::size_t first, std::size_t count, const std::byte* stored);
    std::vector<std::vector<std::uint32_t>> take_truth();

    Metric metric_;
    std::size_t dimensions_;
    IvfOptions options_;
    std::vector<float> centroids_;
    HalfCodec half_codec_;
    float half_scale_[2] = {0, 0};
    std::vector<std::uint32_t> list_of_row_;
    std::vector<float> code_scale_;
    std::vector<std::uint64_t> dead_;
    std::vector<std::uint32_t> sample_;  // rows that are searched for
    std::vector<std::byte> given_;       // what is kept of them
    std::vector<float> queries_;         // the same decoded
    std::vector<TopK> nearest_;          // of each
    std::vector<std::byte> begun_;       // a row of which the rest is still to come
    std::uint64_t next_ = 0;             // byte of the rows' array
    bool comparing_ = false;
    Calibration calibration_;
};

constexpr std::uint64_t most_rows = std::numeric_limits<std::uint32_t>::max();

template <class Element>
void give_piece(std::vector<Element>& values, const ArrayShape& shape, ArrayType type, std::uint64_t width,
                std::uint64_t most, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (shape.type != type || shape.width != width || shape.rows > most)
        throw BadRequest("array \"" + std::string(shape.name) + "\" has another shape than its index");
    if (values.size() != shape.rows * width) values.resize(shape.rows * width);
    write_piece(std::span<Element>(values), offset, bytes);
}

void IvfadcCalibrator::give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (std::strncmp(shape.name, rows_array(), sizeof(shape.name)) != 0) return give_small(shape, offset, bytes);
    require_array(std::span(&shape, 1), rows_array(), rows_type(), rows(), dimensions_);
    if (offset != next_ || bytes.size() > shape.bytes() - offset) throw BadRequest("rows out of order");
    if (!comparing_) begin_rows();
    give_rows(offset, bytes);
}

void IvfadcCalibrator::give_small(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (comparing_) throw BadRequest("an array after the rows");
    const std::string name(shape.name, ::strnlen(shape.name, sizeof(shape.name)));
    if (name == array_centroids) {
        require_array(std::span(&shape, 1), array_centroids, ArrayType::f32, options_.lists, dimensions_);
        write_piece(std::span<float>(centroids_), offset, bytes);
    } else if (name == array_half_mean) {
        require_array(std::span(&shape, 1), array_half_mean, ArrayType::f32, 1, dimensions_);
        write_piece(std::span<float>(half_codec_.mean), offset, bytes);
    } else if (name == array_half_scale) {
        require_array(std::span(&shape, 1), array_half_scale, ArrayType::f32, 1, 2);
        write_piece(std::span<float>(half_scale_), offset, bytes);
    } else if (name == array_list_of_row) {
        give_piece(list_of_row_, shape, ArrayType::u32, 1, most_rows, offset, bytes);
    } else if (name == array_code_scale) {
        give_piece(code_scale_, shape, ArrayType::f32, 1, most_rows, offset, bytes);
    } else if (name == array_calib_dead) {
        give_piece(dead_, shape, ArrayType::u64, 1, most_rows / 64 + 1, offset, bytes);
    } else if (name == array_calib_row) {
        give_piece(sample_, shape, ArrayType::u32, 1, most_calibration_queries, offset, bytes);
    } else if (name == array_calib_query) {
        give_piece(given_, shape, ArrayType::u8, row_bytes(), most_calibration_queries, offset, bytes);
    } else {
        throw BadRequest("an array that the calibration has no use for");
    }
}

// Checks what the rows are compared by.
void IvfadcCalibrator::begin_rows()
{
    if (needs_scales() && code_scale_.size() != rows()) throw BadRequest("scales of another number of rows");
    if (!dead_.empty() && dead_.size() != (rows() + 63) / 64) throw BadRequest("tombstones of another number of rows");
    for (const std::uint32_t list : list_of_row_) {
        if (list >= options_.lists) throw BadRequest("a row is in a list that does not exist");
    }
    if (options_.keeps_half() && !options_.keeps_full()) {
        if (!(half_scale_[0] > 0 && std::isfinite(half_scale_[0])))
            throw BadRequest("the scale of half vectors is impossible");
        half_codec_.scale = half_scale_[0];
    }
    if (sample_.empty() || sample_.size() > most_calibration_queries || given_.size() != sample_.size() * row_bytes())
        throw BadRequest("a sample without its rows");
    for (const std::uint32_t row : sample_) {
        if (row >= rows()) throw BadRequest("a sampled row that does not exist");
    }
    choose_queries();
    comparing_ = true;
}

void IvfadcCalibrator::choose_queries()
{
    const std::size_t given = sample_.size();
    const std::size_t wanted = std::min(given, calibration_sample(options_, rows()));
    queries_.resize(wanted * dimensions_);
    for (std::size_t i = 0; i < wanted; ++i) {
        const std::size_t from = i * given / wanted;
        sample_[i] = sample_[from];
        decode(sample_[i], given_.data() + from * row_bytes(), queries_.data() + i * dimensions_);
    }
    sample_.resize(wanted);
    given_ = {};
    nearest_.assign(wanted, TopK(std::min<std::size_t>(Calibration::ks[3] + 1, rows())));
}

void IvfadcCalibrator::decode(std::size_t row, const std::byte* stored, float* out) const
{
    if (options_.keeps_full()) {
        std::memcpy(out, stored, row_bytes());
    } else if (options_.keeps_half()) {
        std::vector<half_bits> half(dimensions_);
        std::memcpy(half.data(), stored, row_bytes());
        half_codec_.decode(half.data(), out);
    } else {
        const float* centroid = centroids_.data() + std::size_t{list_of_row_[row]} * dimensions_;
        for (std::size_t d = 0; d < dimensions_; ++d) {
            out[d] = centroid[d] + code_scale_[row] * static_cast<float>(std::to_integer<int>(stored[d]) - 128);
        }
    }
}

// Rows whole, and what is left of one at both ends.
void IvfadcCalibrator::give_rows(std::uint64_t offset, std::span<const std::byte> bytes)
{
    next_ = offset + bytes.size();
    if (!begun_.empty()) {
        const std::size_t missing = std::min(row_bytes() - begun_.size(), bytes.size());
        begun_.insert(begun_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(missing));
        bytes = bytes.subspan(missing);
        if (begun_.size() < row_bytes()) return;
        compare((next_ - bytes.size()) / row_bytes() - 1, 1, begun_.data());
        begun_.clear();
    }
    const std::size_t first = (next_ - bytes.size()) / row_bytes();
    const std::size_t whole = bytes.size() / row_bytes();
    for (std::size_t done = 0; done < whole; done += tile_rows) {
        compare(first + done, std::min(tile_rows, whole - done), bytes.data() + done * row_bytes());
    }
    begun_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(whole * row_bytes()), bytes.end());
}

void IvfadcCalibrator::compare(std::size_t first, std::size_t count, const std::byte* stored)
{
    std::vector<float> vectors(count * dimensions_);
    for (std::size_t i = 0; i < count; ++i) {
        decode(first + i, stored + i * row_bytes(), vectors.data() + i * dimensions_);
    }
    std::vector<float> norms(count);
    squared_norms(vectors.data(), count, dimensions_, norms.data());
    std::vector<float> tile(tile_queries * count);
    for (std::size_t q = 0; q < sample_.size(); q += tile_queries) {
        const std::size_t width = std::min(tile_queries, sample_.size() - q);
        score_tile(metric_, queries_.data() + q * dimensions_, width, vectors.data(), norms.data(), count, dimensions_,
                   tile.data());
        for (std::size_t i = 0; i < count; ++i) {
            if (!bit_is_set(dead_, first + i)) continue;
            for (std::size_t w = 0; w < width; ++w) tile[w * count + i] = std::numeric_limits<float>::infinity();
        }
        for (std::size_t w = 0; w < width; ++w) {
            nearest_[q + w].push_block(tile.data() + w * count, count, static_cast<std::uint32_t>(first));
        }
    }
}

std::vector<std::vector<std::uint32_t>> IvfadcCalibrator::take_truth()
{
    std::vector<std::vector<std::uint32_t>> truth(sample_.size());
    for (std::size_t q = 0; q < sample_.size(); ++q) {
        for (const Candidate& candidate : nearest_[q].take_sorted()) {
            if (candidate.row != sample_[q] && truth[q].size() < Calibration::ks[3]) truth[q].push_back(candidate.row);
        }
    }
    return truth;
}

void IvfadcCalibrator::run(RowBuffer& none, const BuildProgress& progress, ThreadPool& pool)
{
    if (none.size() > 0) throw BadRequest("a calibration takes its rows as an array");
    if (!comparing_ || next_ != rows() * row_bytes()) throw BadRequest("the rows were not given whole");
    const auto truth = take_truth();
    const IvfadcCalibration measured{options_, metric_,  dimensions_, centroids_, list_of_row_,
                                     sample_,  queries_, truth,       nullptr};
    calibration_ = measured.run(progress, pool);
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_calibrator(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<IvfadcCalibrator>(shape, options);
}

}  // namespace pgwarp
