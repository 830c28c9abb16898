// The steps of a build of ivfadc on the CPU.
#include "methods/ivfadc/build_steps.h"

#include <algorithm>

#include "methods/ivfadc/build_samples.h"
#include "methods/rows/byte_lists.h"
#include "numeric/kmeans.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t assign_step = 65536;
constexpr std::size_t encode_step = 8192;

void subtract_centroid(const IvfadcArrays& arrays, std::span<const float> vectors, std::size_t row, float* out)
{
    const float* vector = vectors.data() + row * arrays.dimensions;
    const float* centroid = arrays.centroid_of(row);
    for (std::size_t d = 0; d < arrays.dimensions; ++d) out[d] = vector[d] - centroid[d];
}

}  // namespace

void IvfadcBuildSteps::train_lists(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    const std::vector<float> sample =
        gather_rows(input.vectors().data(), arrays.dimensions,
                    sample_rows(arrays.rows, arrays.options.lists * rows_per_list, build_seed));
    KMeansOptions training = list_training(arrays.options, input.metric(), input.progress);
    training.iterations = list_iterations;
    input.report("training lists", 0, list_iterations);
    arrays.centroids = train_kmeans(sample, arrays.dimensions, training, input.pool);
}

void IvfadcBuildSteps::assign_rows(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    const std::size_t dimensions = arrays.dimensions;
    arrays.list_of_row.resize(arrays.rows);
    for (std::size_t first = 0; first < arrays.rows; first += assign_step) {
        input.report("assigning rows", first, arrays.rows);
        const std::size_t count = std::min(assign_step, arrays.rows - first);
        assign_to_centroids(list_metric(input), input.vectors().subspan(first * dimensions, count * dimensions),
                            dimensions, arrays.centroids, std::span(arrays.list_of_row).subspan(first, count),
                            input.pool, input.progress.cancel);
    }
}

void IvfadcBuildSteps::train_quantizer(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    input.report("training quantizer", 0, 1);
    const std::size_t dimensions = arrays.dimensions;
    const CancelToken* cancel = input.progress.cancel;
    const std::vector<std::uint32_t> chosen = quantizer_sample(arrays.rows);
    std::vector<float> sample(chosen.size() * dimensions);
    for (std::size_t i = 0; i < chosen.size(); ++i)
        subtract_centroid(arrays, input.vectors(), chosen[i], sample.data() + i * dimensions);
    if (arrays.options.opq && arrays.rows > 0) {
        arrays.rotation = Rotation(sample, dimensions, arrays.options.subquantizers, build_seed, input.pool, cancel);
        const std::vector<float> plain = sample;
        arrays.rotation.apply(plain, sample, input.pool);
    }
    arrays.quantizer.emplace(dimensions, arrays.options.subquantizers);
    arrays.quantizer->train(sample, build_seed, input.pool, cancel);
}

void IvfadcBuildSteps::encode_products(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    const std::size_t dimensions = arrays.dimensions;
    const std::size_t width = arrays.options.subquantizers;
    arrays.codes.resize(arrays.rows * width);
    std::vector<float> residuals(std::min(encode_step, arrays.rows) * dimensions);
    std::vector<float> plain(arrays.rotation.empty() ? 0 : residuals.size());
    for (std::size_t first = 0; first < arrays.rows; first += encode_step) {
        input.report("encoding rows", first, arrays.rows);
        const std::size_t count = std::min(encode_step, arrays.rows - first);
        const std::span<float> piece = std::span(residuals).first(count * dimensions);
        const std::span<float> target = plain.empty() ? piece : std::span(plain).first(piece.size());
        for (std::size_t i = 0; i < count; ++i)
            subtract_centroid(arrays, input.vectors(), first + i, target.data() + i * dimensions);
        if (!plain.empty()) arrays.rotation.apply(target, piece, input.pool);
        arrays.quantizer->encode_rows(piece, std::span(arrays.codes).subspan(first * width, count * width), input.pool);
    }
}

void IvfadcBuildSteps::encode_bytes(const IvfadcBuildInput& input, IvfadcArrays& arrays)
{
    const std::size_t dimensions = arrays.dimensions;
    arrays.codes.resize(arrays.rows * dimensions);
    arrays.code_scale.resize(arrays.rows);
    for (std::size_t first = 0; first < arrays.rows; first += encode_step) {
        input.report("encoding rows", first, arrays.rows);
        input.pool.parallel_for(
            std::min(encode_step, arrays.rows - first), 256, [&](std::size_t begin, std::size_t end) {
                for (std::size_t row = first + begin; row < first + end; ++row) {
                    arrays.code_scale[row] =
                        pgwarp::encode_bytes(input.vectors().data() + row * dimensions, arrays.centroid_of(row),
                                             dimensions, arrays.codes.data() + row * dimensions);
                }
            });
    }
}

std::unique_ptr<Searcher> IvfadcBuildSteps::make_searcher(const IndexShape& shape, const ParameterList& options,
                                                          std::span<const ArrayShape> arrays)
{
    return make_ivfadc_searcher(shape, options, arrays);
}

}  // namespace pgwarp
