#include "curve_data.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include "described.h"
#include "generated.h"
#include "gpu/bench_data.h"
#include "matrix.h"
#include "methods/method.h"
#include "numeric/distance.h"

namespace pgwarp::bench
{

namespace
{

constexpr std::size_t rows_of_cluster = 200;
constexpr float distance_of_centres = 40;  // in widths of a cluster

void read_files(const CurveSource& source, CurveData& data)
{
    Matrix<float> base;
    for (const std::string& path : source.base) {
        const std::size_t limit = source.rows == 0 ? 0 : source.rows - base.rows;
        append_rows(base, read_vectors(path, limit, source.dimensions));
        if (source.rows != 0 && base.rows >= source.rows) break;
    }
    data.dimensions = base.columns;
    data.base = std::move(base.values);
    data.queries = read_vectors(source.query, source.queries, source.dimensions).values;
}

std::vector<float> draw_clustered(std::size_t rows, const std::vector<float>& centre, std::size_t dimensions,
                                  std::uint64_t seed)
{
    std::vector<double> weights(centre.size() / dimensions);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 1.0 / static_cast<double>(i + 1);
    std::discrete_distribution<std::size_t> choose(weights.begin(), weights.end());
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> out(rows * dimensions);
    for (std::size_t row = 0; row < rows; ++row) {
        const float* from = centre.data() + choose(random) * dimensions;
        for (std::size_t d = 0; d < dimensions; ++d) {
            const float width = 1 / (1 + static_cast<float>(d) / 6);
            out[row * dimensions + d] = (distance_of_centres * from[d] + normal(random)) * width;
        }
    }
    return out;
}

void generate_clusters(const CurveSource& source, CurveData& data)
{
    data.dimensions = source.dimensions;
    std::vector<float> centre((source.rows / rows_of_cluster + 1) * source.dimensions);
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    for (float& value : centre) value = normal(random);
    data.base = draw_clustered(source.rows, centre, source.dimensions, 1);
    data.queries = draw_clustered(source.queries, centre, source.dimensions, 2);
}

void normalise(std::vector<float>& rows, std::size_t dimensions)
{
    for (std::size_t i = 0; i < rows.size(); i += dimensions) {
        const double norm = canonical_norm(rows.data() + i, dimensions);
        for (std::size_t d = 0; norm > 0 && d < dimensions; ++d) rows[i + d] = static_cast<float>(rows[i + d] / norm);
    }
}

}  // namespace

CurveData load_curve_data(const CurveSource& source, ThreadPool& pool)
{
    CurveData data;
    if (!source.base.empty()) {
        read_files(source, data);
    } else if (source.generated == "embedding") {
        Generated generated = generate_embeddings(source.rows, source.dimensions, source.queries);
        data = {source.dimensions, std::move(generated.base.values), std::move(generated.queries.values)};
    } else if (source.generated == "clustered") {
        generate_clusters(source, data);
    } else {
        throw std::runtime_error("unknown kind of rows: " + source.generated);
    }
    if (source.turned) {
        const std::vector<double> rotation = random_rotation(data.dimensions, 5);
        rotate(data.base, rotation, data.dimensions, pool);
        rotate(data.queries, rotation, data.dimensions, pool);
    }
    if (source.metric == Metric::cosine) {
        normalise(data.base, data.dimensions);
        normalise(data.queries, data.dimensions);
    }
    return data;
}

std::vector<std::vector<std::uint32_t>> nearest_of_all(const CurveData& data, Metric metric, std::uint32_t k,
                                                       ThreadPool& pool)
{
    IndexShape shape{};
    shape.method = complete_method().method;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = static_cast<std::uint32_t>(data.dimensions);
    const char* vectors = array_name(complete_method(), ArrayRole::vectors);
    const std::vector<ArrayShape> arrays{make_array_shape(vectors, ArrayType::f32, data.rows(), data.dimensions)};
    const auto searcher = find_method(shape.method)->make_searcher(shape, {}, arrays);
    searcher->write(vectors, 0, std::as_bytes(std::span(data.base)));
    searcher->finish_load(pool);
    SearchBatch batch;
    batch.queries = data.queries;
    batch.count = data.asked();
    batch.k = k;
    std::vector<std::vector<RowResult>> found;
    searcher->search(batch, found, pool);
    std::vector<std::vector<std::uint32_t>> nearest(batch.count);
    for (std::size_t q = 0; q < batch.count; ++q) {
        for (const RowResult& row : found[q]) nearest[q].push_back(row.row);
    }
    return nearest;
}

}  // namespace pgwarp::bench
