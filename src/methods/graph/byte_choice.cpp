// Rows and queries as bytes, and the probe that compares byte scores with exact ones.
#include "methods/graph/byte_choice.h"

#include <algorithm>

#include "numeric/distance.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t fewest_dimensions = 32;
constexpr std::size_t mean_sample = 4096;
constexpr std::size_t probed_rows = 256;
constexpr double most_error = 0.15;  // of the deviation of scores to neighbours
constexpr std::uint64_t sample_seed = 0x70726f62;

double variance(std::span<const double> values)
{
    double sum = 0;
    double squares = 0;
    for (const double value : values) {
        sum += value;
        squares += value * value;
    }
    const auto count = static_cast<double>(values.size());
    return std::max(0.0, squares / count - sum / count * (sum / count));
}

}  // namespace

ByteRowTerms encode_byte_row(Metric metric, const float* row, const float* mean, std::size_t dimensions,
                             std::uint8_t* codes)
{
    const float scale = encode_bytes(row, mean, dimensions, codes);
    std::int64_t squares = 0;
    for (std::size_t d = 0; d < dimensions; ++d) squares += (codes[d] - 128) * (codes[d] - 128);
    const double squared = static_cast<double>(squares) * scale * scale;
    return {scale, metric == Metric::l2 ? static_cast<float>(squared) : 0};
}

void assign_byte_query(Metric metric, const float* query, const float* mean, std::size_t dimensions, ByteQuery& out)
{
    out.assign(query, metric == Metric::l2 ? mean : nullptr, dimensions);
}

bool may_compare_bytes(Metric metric, std::size_t dimensions)
{
    return metric != Metric::l1 && !is_of_bits(metric) && dimensions >= fewest_dimensions;
}

std::vector<std::uint32_t> rows_of_mean(std::size_t rows)
{
    return sample_rows(rows, mean_sample, sample_seed);
}

std::vector<std::uint32_t> rows_of_probe(std::size_t rows)
{
    return sample_rows(rows, probed_rows, sample_seed + 1);
}

void RowMean::add(const float* row)
{
    for (std::size_t d = 0; d < sum_.size(); ++d) sum_[d] += row[d];
    ++count_;
}

std::vector<float> RowMean::mean() const
{
    const auto count = static_cast<double>(std::max<std::size_t>(count_, 1));
    std::vector<float> mean(sum_.size());
    for (std::size_t d = 0; d < mean.size(); ++d) mean[d] = static_cast<float>(sum_[d] / count);
    return mean;
}

ByteProbe::ByteProbe(Metric metric, std::span<const float> mean)
    : metric_(metric), mean_(mean.begin(), mean.end()), codes_(mean.size())
{
}

void ByteProbe::add(const float* row, const float* neighbours, std::size_t count)
{
    if (count < 2) return;
    const std::size_t dimensions = mean_.size();
    assign_byte_query(metric_, row, mean_.data(), dimensions, query_);
    const float factor = byte_row_factor(metric_, query_);
    std::vector<double> exact(count);
    std::vector<double> off(count);
    for (std::size_t i = 0; i < count; ++i) {
        const float* other = neighbours + i * dimensions;
        const ByteRowTerms terms = encode_byte_row(metric_, other, mean_.data(), dimensions, codes_.data());
        std::int32_t product = 0;
        for (std::size_t d = 0; d < dimensions; ++d) product += codes_[d] * query_.values[d];
        exact[i] = score(metric_, row, other, dimensions);
        off[i] = exact[i] - byte_row_score(factor, terms, product - query_.offset);
    }
    errors_ += variance(off);
    spread_ += variance(exact);
}

bool ByteProbe::tells_apart() const
{
    return errors_ <= most_error * most_error * spread_;
}

}  // namespace pgwarp
