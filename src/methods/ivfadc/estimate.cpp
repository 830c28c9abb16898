// The estimate of an index of ivfadc with product quantizer codes and halves.
#include "methods/ivfadc/estimate.h"

#include "methods/ivfadc/defaults.h"

namespace pgwarp
{

namespace
{

constexpr double codebook_rows = 256;
constexpr double number_bytes = 4;  // of a row's list, or of its place
constexpr double block_rows = 16;   // rows of lists are padded to blocks, by half of one on average

// Training and calibration, which look at a sample; then each row.
constexpr double fixed_seconds = 0.1;
constexpr double core_seconds_of_dimension = 1.6e-3;
constexpr double core_seconds_of_value = 1.08e-7;
constexpr double gpu_seconds = 0.05;
constexpr double gpu_seconds_of_value = 1e-9;

}  // namespace

BuildEstimate estimate_ivfadc_build(const EstimateInput& input)
{
    const double dimensions = input.shape.dimensions;
    const auto lists =
        static_cast<double>(std::min<std::size_t>(ivfadc::choose_lists(static_cast<std::size_t>(input.rows)),
                                                  std::max<std::size_t>(1, static_cast<std::size_t>(input.rows))));
    const auto code = static_cast<double>(ivfadc::choose_subquantizers(input.shape.dimensions));
    const double halves = bytes_of_halves(input.shape);
    const double centroids = lists * bytes_of_floats(input.shape);
    const double codebooks = codebook_rows * bytes_of_floats(input.shape);
    // The CPU proposes by bytes, which it makes of the halves, and then needs no codes.
    const double bytes = dimensions + 2 * sizeof(float);
    const double padding = lists * block_rows / 2 * bytes;
    return {.stored_bytes = input.rows * (code + number_bytes + halves) + centroids + codebooks,
            .host_bytes = input.rows * (halves + bytes + 2 * number_bytes) + centroids + padding,
            .gpu_bytes = input.rows * (code + halves + 2 * number_bytes) + centroids + codebooks,
            .core_seconds = fixed_seconds + dimensions * core_seconds_of_dimension +
                            input.rows * dimensions * core_seconds_of_value,
            .gpu_seconds = gpu_seconds + input.rows * dimensions * gpu_seconds_of_value};
}

}  // namespace pgwarp
