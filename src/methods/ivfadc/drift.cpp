// Drift: mean squared errors of a sample of old rows and of new rows, compared by a test of significance.
#include "methods/ivfadc/drift.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "methods/arrays.h"
#include "methods/ivfadc/build_arrays.h"
#include "numeric/kmeans.h"
#include "numeric/metric.h"
#include "protocol/drift.h"

namespace pgwarp
{

namespace
{

constexpr double tolerance = 1.5;            // limit of the error of new rows, in errors of old ones
constexpr double codes_tolerance = 2.5;      // where the old rows' residuals are known by their codes alone
constexpr double deviations = 3;             // standard deviations that two samples may differ by
constexpr std::size_t rows_for_a_word = 32;  // with fewer rows per codeword the codebook overfits
constexpr std::uint64_t most_sample = 1U << 16;

// A mean over a sample, and the variance of that mean. Errors are uneven: a few rows far from every codeword may make
// most of the mean.
class MeanError
{
public:
    void add(double error)
    {
        ++rows_;
        const double step = error - mean_;
        mean_ += step / rows_;
        squares_ += step * (error - mean_);
    }
    double mean() const { return mean_; }
    double variance() const { return rows_ < 2 ? 0 : squares_ / (rows_ - 1.0) / rows_; }

private:
    double rows_ = 0;
    double mean_ = 0;
    double squares_ = 0;  // of the differences from the mean
};

struct SampleError {
    MeanError centroid;
    MeanError code;
};

// Whether the error of new rows exceeds `times` that of old ones by more than the chance of two samples.
bool is_worse(const MeanError& added, const MeanError& old, double times)
{
    const double difference = added.mean() - times * old.mean();
    const double variance = added.variance() + times * times * old.variance();
    return difference > deviations * std::sqrt(variance);
}

class IvfadcDrift : public Builder
{
public:
    IvfadcDrift(const IndexShape& shape, const ParameterList& options)
        : metric_(static_cast<Metric>(shape.metric)), dimensions_(shape.dimensions)
    {
        old_.dimensions = dimensions_;
        old_.options = IvfOptions::resolve(options, std::numeric_limits<std::uint32_t>::max(), dimensions_);
        old_.make_quantizer_room();
        const auto trained = static_cast<std::size_t>(options.get(option_trained_rows, 0));
        compares_codes_ =
            old_.options.product_codes && keeps_vectors() && trained >= rows_for_a_word * ProductQuantizer::codewords;
    }

    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override;
    std::vector<ArrayShape> arrays() const override
    {
        return {make_array_shape(array_drift, ArrayType::u8, 1, sizeof(DriftReport))};
    }
    void read(const std::string&, std::uint64_t offset, std::span<std::byte> out) const override
    {
        read_piece(std::span<const DriftReport>(&report_, 1), offset, out);
    }
    Calibration calibration() const override { return {}; }
    ParameterList effective_options() const override { return old_.options.as_parameters(); }

private:
    bool keeps_vectors() const { return old_.options.keeps_full() || old_.options.keeps_half(); }
    std::size_t row_bytes() const
    {
        return old_.options.keeps_full()   ? dimensions_ * sizeof(float)
               : old_.options.keeps_half() ? dimensions_ * sizeof(half_bits)
                                           : old_.options.code_width(dimensions_);
    }
    const std::byte* kept(std::size_t row) const
    {
        const std::span<const std::byte> rows =
            keeps_vectors() ? std::span<const std::byte>(vectors_) : std::as_bytes(std::span(old_.codes));
        return rows.data() + row * row_bytes();
    }
    void check_given() const;
    double centroid_error(std::size_t row) const;
    double code_error(const float* vector, std::uint32_t list, const std::uint8_t* code) const;
    SampleError error_of_old() const;
    SampleError error_of_new(std::span<const float> vectors, ThreadPool& pool) const;

    Metric metric_;
    std::size_t dimensions_;
    IvfadcArrays old_;                // quantizers, and lists and codes of the sample
    std::vector<std::byte> vectors_;  // of the sample, as the index keeps them
    bool compares_codes_ = false;
    DriftReport report_{};
};

void IvfadcDrift::give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    const std::string name(shape.name, ::strnlen(shape.name, sizeof(shape.name)));
    if (!is_row_array(ivfadc_description, name.c_str())) return old_.write_quantizer(shape, offset, bytes);
    old_.rows = shape.rows;
    if (shape.rows > most_sample) throw BadRequest("a sample of too many rows");
    const std::vector<ArrayShape> known = old_.shapes();
    const ArrayShape* expected = find_array(known, name.c_str());
    if (expected == nullptr) throw BadRequest("an array that the index has no use for");
    require_array(std::span(&shape, 1), expected->name, expected->type, expected->rows, expected->width);
    const auto take = [&](auto& values, std::size_t size) {
        values.resize(size);
        write_piece(std::span(values), offset, bytes);
    };
    if (name == array_list_of_row) return take(old_.list_of_row, shape.rows);
    if (name == array_code_scale) return take(old_.code_scale, shape.rows);
    if (name == array_codes) return take(old_.codes, shape.bytes());
    take(vectors_, shape.bytes());
}

void IvfadcDrift::check_given() const
{
    const std::size_t rows = old_.list_of_row.size();
    const bool whole =
        (!old_.options.keeps_codes() || old_.codes.size() == rows * old_.options.code_width(dimensions_)) &&
        (!old_.options.byte_codes || old_.code_scale.size() == rows) &&
        (!keeps_vectors() || vectors_.size() == rows * row_bytes());
    if (rows == 0 || !whole) throw BadRequest("a sample without its rows");
    for (const std::uint32_t list : old_.list_of_row) {
        if (list >= old_.options.lists) throw BadRequest("a row is in a list that does not exist");
    }
}

// Returns the squared distance of a sample row to its centroid. With product codes alone it is the squared length of
// the decoded residual, which a rotation does not change.
double IvfadcDrift::centroid_error(std::size_t row) const
{
    std::vector<float> vector(dimensions_);
    if (!keeps_vectors() && old_.options.product_codes) {
        old_.quantizer->decode(reinterpret_cast<const std::uint8_t*>(kept(row)), vector.data());
        return canonical_dot(vector.data(), vector.data(), dimensions_);
    }
    old_.decode(row, kept(row), vector.data());
    return canonical_l2_squared(vector.data(), old_.centroid_of(row), dimensions_);
}

// Returns the squared error of the code of a vector in this list. Null: of the code that it would get.
double IvfadcDrift::code_error(const float* vector, std::uint32_t list, const std::uint8_t* code) const
{
    std::vector<float> residual(dimensions_);
    const float* centroid = old_.centroids.data() + std::size_t{list} * dimensions_;
    for (std::size_t d = 0; d < dimensions_; ++d) residual[d] = vector[d] - centroid[d];
    if (!old_.rotation.empty()) {
        const std::vector<float> plain = residual;
        old_.rotation.apply(plain.data(), residual.data());
    }
    std::vector<std::uint8_t> own(old_.options.subquantizers);
    if (code == nullptr) old_.quantizer->encode(residual.data(), own.data());
    std::vector<float> coded(dimensions_);
    old_.quantizer->decode(code != nullptr ? code : own.data(), coded.data());
    return canonical_l2_squared(residual.data(), coded.data(), dimensions_);
}

SampleError IvfadcDrift::error_of_old() const
{
    SampleError errors;
    std::vector<float> vector(dimensions_);
    for (std::size_t row = 0; row < old_.list_of_row.size(); ++row) {
        errors.centroid.add(centroid_error(row));
        if (!compares_codes_) continue;
        old_.decode(row, kept(row), vector.data());
        errors.code.add(
            code_error(vector.data(), old_.list_of_row[row], old_.codes.data() + row * old_.options.subquantizers));
    }
    return errors;
}

// Errors with the lists and codes that the rows would get.
SampleError IvfadcDrift::error_of_new(std::span<const float> vectors, ThreadPool& pool) const
{
    std::vector<std::uint32_t> lists(vectors.size() / dimensions_);
    const Metric metric = metric_ == Metric::cosine ? Metric::inner_product : Metric::l2;
    assign_to_centroids(metric, vectors, dimensions_, old_.centroids, lists, pool);
    SampleError errors;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        const float* vector = vectors.data() + i * dimensions_;
        const float* centroid = old_.centroids.data() + std::size_t{lists[i]} * dimensions_;
        errors.centroid.add(canonical_l2_squared(vector, centroid, dimensions_));
        if (compares_codes_) errors.code.add(code_error(vector, lists[i], nullptr));
    }
    return errors;
}

void IvfadcDrift::run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
{
    progress.report("comparing rows", 0, rows.size());
    check_given();
    if (old_.stores_half()) old_.half.take_scale();
    const SampleError old = error_of_old();
    const SampleError added = error_of_new(rows.vectors(), pool);
    const bool worse = is_worse(added.centroid, old.centroid, keeps_vectors() ? tolerance : codes_tolerance) ||
                       is_worse(added.code, old.code, tolerance);
    report_ = {old.centroid.mean(), old.code.mean(), added.centroid.mean(), added.code.mean(), worse ? 1U : 0U};
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_drift(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<IvfadcDrift>(shape, options);
}

}  // namespace pgwarp
