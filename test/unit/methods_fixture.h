// Builds an index in memory, loads it as the engine does, and compares with float64 brute force.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "methods/method.h"

namespace pgwarp::test
{

inline ParameterList make_list(std::initializer_list<std::pair<const char*, std::int64_t>> items)
{
    ParameterList list;
    for (const auto& [name, value] : items) list.set(name, value);
    return list;
}

inline std::vector<float> random_rows(std::size_t count, std::size_t dimensions, unsigned seed, float spread = 1)
{
    std::mt19937 generator(seed);
    std::normal_distribution<float> centre(0, 3);
    std::normal_distribution<float> noise(0, 1);
    std::vector<float> centres(16 * dimensions);
    for (float& value : centres) value = centre(generator);
    std::vector<float> rows(count * dimensions);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t cluster = generator() % 16;
        for (std::size_t d = 0; d < dimensions; ++d)
            rows[i * dimensions + d] = (centres[cluster * dimensions + d] + noise(generator)) * spread;
    }
    return rows;
}

inline void normalise_rows(std::vector<float>& rows, std::size_t dimensions)
{
    for (std::size_t i = 0; i < rows.size(); i += dimensions) {
        const double norm = canonical_norm(rows.data() + i, dimensions);
        for (std::size_t d = 0; d < dimensions; ++d) rows[i + d] = static_cast<float>(rows[i + d] / norm);
    }
}

struct Index {
    IndexShape shape{};
    RowBuffer rows;
    std::unique_ptr<Builder> builder;
    std::unique_ptr<Searcher> searcher;

    Index(Method method, Metric metric, std::size_t dimensions, const std::vector<float>& vectors,
          const ParameterList& options, ThreadPool& pool, ElementType element = ElementType::float32)
        : Index(shape_of(method, metric, dimensions, element),
                dense_rows(vectors.data(), vectors.size() / dimensions, dimensions), options, pool)
    {
    }
    Index(const IndexShape& shape_of_rows, const RowView& view, const ParameterList& options, ThreadPool& pool)
        : shape(shape_of_rows), rows(shape_of_rows)
    {
        const MethodFactory* factory = find_method(shape.method);
        builder = factory->make_builder(shape, options);
        // Rows arrive out of order, as from several workers.
        for (std::size_t i = view.count; i-- > 0;) {
            const Tid tid{static_cast<std::uint32_t>(i / 7), static_cast<std::uint16_t>(i % 7 + 1), 0};
            rows.append({&tid, 1}, view.row(i));
        }
        rows.sort_by_tid();
        BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
        builder->run(rows, progress, pool);
        searcher = factory->make_searcher(shape, builder->effective_options(), builder->arrays());
        write_to(*searcher, 1001);
        searcher->finish_load(pool);
    }

    static IndexShape shape_of(Method method, Metric metric, std::size_t dimensions, ElementType element)
    {
        IndexShape shape{};
        shape.method = method;
        shape.element = element;
        shape.metric = static_cast<std::uint8_t>(metric);
        shape.dimensions = static_cast<std::uint32_t>(dimensions);
        return shape;
    }

    std::vector<std::byte> contents(const ArrayShape& array) const
    {
        std::vector<std::byte> bytes(array.bytes());
        if (!bytes.empty()) builder->read(array.name, 0, bytes);
        return bytes;
    }

    // Loads a searcher or a mirror with the arrays, in pieces of `piece` bytes.
    template <class Loaded>
    void write_to(Loaded& loaded, std::size_t piece = 100003) const
    {
        for (const ArrayShape& array : builder->arrays()) {
            const std::vector<std::byte> bytes = contents(array);
            for (std::size_t offset = 0; offset < bytes.size(); offset += piece)
                loaded.write(array.name, offset,
                             std::span(bytes).subspan(offset, std::min(piece, bytes.size() - offset)));
        }
    }

    std::vector<std::vector<RowResult>> search(const std::vector<float>& queries, std::uint32_t k, ThreadPool& pool,
                                               const ParameterList& settings = {}, RowBitmap dead = {},
                                               std::int64_t effort = 0) const
    {
        SearchBatch batch;
        batch.queries = queries;
        batch.count = queries.size() / shape.dimensions;
        batch.k = k;
        batch.settings = settings;
        batch.dead = dead;
        batch.effort = effort;
        std::vector<std::vector<RowResult>> results;
        searcher->search(batch, results, pool);
        return results;
    }
};

// The k nearest live rows of [count][width] by distance(query, row), ties by row.
template <class Distance>
std::vector<RowResult> nearest_rows(const float* query, const std::vector<float>& rows, std::size_t width,
                                    std::size_t k, RowBitmap dead, const Distance& distance)
{
    std::vector<RowResult> all;
    for (std::size_t i = 0; i < rows.size() / width; ++i) {
        if (!bit_is_set(dead, i))
            all.push_back({distance(query, rows.data() + i * width), static_cast<std::uint32_t>(i)});
    }
    std::sort(all.begin(), all.end(), [](const RowResult& a, const RowResult& b) {
        return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
    });
    all.resize(std::min(k, all.size()));
    return all;
}

// The same by canonical distances.
inline std::vector<RowResult> brute_force(Metric metric, const float* query, const std::vector<float>& rows,
                                          std::size_t dimensions, std::size_t k, RowBitmap dead = {})
{
    return nearest_rows(query, rows, dimensions, k, dead,
                        [&](const float* a, const float* b) { return canonical_distance(metric, a, b, dimensions); });
}

inline std::vector<std::uint32_t> ids(const std::vector<RowResult>& results)
{
    std::vector<std::uint32_t> rows;
    for (const RowResult& result : results) rows.push_back(result.row);
    return rows;
}

// The share of the wanted rows that were found.
inline double recall(const std::vector<RowResult>& found, const std::vector<RowResult>& wanted)
{
    if (wanted.empty()) return 1;
    std::size_t hits = 0;
    for (const RowResult& want : wanted) {
        hits += static_cast<std::size_t>(
            std::any_of(found.begin(), found.end(), [&](const RowResult& result) { return result.row == want.row; }));
    }
    return static_cast<double>(hits) / static_cast<double>(wanted.size());
}

}  // namespace pgwarp::test
