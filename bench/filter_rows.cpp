#include "filter_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

#include "cluster_order.h"
#include "generated.h"
#include "numeric/distance.h"
#include "numeric/metric.h"

namespace pgwarp::bench
{

namespace
{

constexpr std::size_t tile_rows = 512;

std::vector<std::uint64_t> range_predicate(std::uint32_t column, std::uint64_t first, std::uint64_t last)
{
    return {1, column | std::uint64_t{1} << 32, first, last};
}

}  // namespace

Where where_of(const std::string& name)
{
    const auto* const found = std::find(std::begin(where_names), std::end(where_names), name);
    if (found == std::end(where_names)) throw std::runtime_error("--where: anywhere, own, other, near or far");
    return static_cast<Where>(found - std::begin(where_names));
}

FilterRows::FilterRows(const FilterSource& source, ThreadPool& pool) : rows_(source.rows), halves_(source.halves)
{
    if (rows_ < regions) throw std::runtime_error("--rows: at least one for each region");
    if (halves_) {
        as_halves_ = std::make_unique_for_overwrite<half_bits[]>(rows_ * source.dimensions);
    } else {
        full_ = std::make_unique_for_overwrite<float[]>(rows_ * source.dimensions);
    }
    queries_ = {source.queries, source.dimensions, std::vector<float>(source.queries * source.dimensions)};
    source.base.empty() ? make(source, pool) : load(source);
    attributes_.resize(rows_ * attribute_columns);
    std::mt19937_64 random(3);
    for (std::size_t row = 0; row < rows_; ++row) attributes_[row * attribute_columns] = random() % regions;
    choose_pivots();
    assign(pool);
}

void FilterRows::make(const FilterSource& source, ThreadPool& pool)
{
    constexpr std::size_t step = EmbeddingSource::block_rows;
    const EmbeddingSource embeddings(rows_, source.dimensions);
    const std::size_t blocks = first_query_block(rows_);
    const std::size_t query_blocks = (source.queries + step - 1) / step;
    pool.parallel_for(blocks + query_blocks, 1, [&](std::size_t block, std::size_t) {
        if (block >= blocks) {
            const std::size_t first = (block - blocks) * step;
            return embeddings.make_block(block, std::min(step, source.queries - first), queries_.row(first).data());
        }
        const std::size_t count = std::min(step, rows_ - block * step);
        std::vector<float> some(count * source.dimensions);
        embeddings.make_block(block, count, some.data());
        keep(block * step, count, some.data());
    });
}

void FilterRows::load(const FilterSource& source)
{
    const Matrix<float> base = read_vectors(source.base, rows_, source.dimensions);
    queries_ = read_vectors(source.query, source.queries, source.dimensions);
    if (base.columns != source.dimensions || queries_.columns != source.dimensions)
        throw std::runtime_error("--dimensions: the files have " + std::to_string(base.columns));
    if (base.rows < rows_ || queries_.rows < source.queries)
        throw std::runtime_error("the files have fewer than --rows or --queries");
    keep(0, rows_, base.values.data());
}

void FilterRows::keep(std::size_t first, std::size_t count, const float* values)
{
    if (halves_) return to_half(values, count * width(), as_halves_.get() + first * width());
    std::copy_n(values, count * width(), full_.get() + first * width());
}

void FilterRows::read(std::size_t first, std::size_t count, float* out) const
{
    if (halves_) return from_half(as_halves_.get() + first * width(), count * width(), out);
    std::copy_n(full_.get() + first * width(), count * width(), out);
}

void FilterRows::choose_pivots()
{
    Matrix<float> chosen{regions, width(), std::vector<float>(regions * width())};
    for (std::size_t i = 0; i < regions; ++i) read(i * (rows_ / regions), 1, chosen.row(i).data());
    const std::vector<std::uint32_t> order = cluster_order(chosen);
    pivots_ = chosen;
    for (std::size_t i = 0; i < regions; ++i) std::ranges::copy(chosen.row(order[i]), pivots_.row(i).begin());
}

void FilterRows::assign(ThreadPool& pool)
{
    std::vector<float> norms(regions);
    squared_norms(pivots_.values.data(), regions, width(), norms.data());
    pool.parallel_for((rows_ + tile_rows - 1) / tile_rows, 8, [&](std::size_t begin, std::size_t end) {
        std::vector<float> some(tile_rows * width());
        std::vector<float> scored(tile_rows * regions);
        for (std::size_t tile = begin; tile < end; ++tile) {
            const std::size_t first = tile * tile_rows;
            const std::size_t count = std::min(tile_rows, rows_ - first);
            read(first, count, some.data());
            score_tile(Metric::l2, some.data(), count, pivots_.values.data(), norms.data(), regions, width(),
                       scored.data());
            for (std::size_t i = 0; i < count; ++i) {
                const float* const own = scored.data() + i * regions;
                attributes_[(first + i) * attribute_columns + 1] =
                    static_cast<std::uint64_t>(std::min_element(own, own + regions) - own);
            }
        }
    });
    region_rows_.assign(regions, 0);
    for (std::size_t row = 0; row < rows_; ++row) ++region_rows_[attributes_of(row)[1]];
}

std::vector<float> FilterRows::distances_to_pivots(std::size_t query) const
{
    std::vector<float> distances(regions);
    scores(Metric::l2, queries_.row(query).data(), pivots_.values.data(), regions, width(), distances.data());
    return distances;
}

// The cluster that each region is in, where each has this share of the rows. Clusters of a region or two are regions.
std::vector<std::size_t> FilterRows::parts(double share) const
{
    std::vector<std::size_t> out(regions);
    if (share * static_cast<double>(regions) < 2) {
        std::iota(out.begin(), out.end(), std::size_t{0});
        return out;
    }
    double before = 0;
    for (std::size_t i = 0; i < regions; ++i) {
        const auto own = static_cast<double>(region_rows_[i]);
        out[i] = static_cast<std::size_t>((before + own / 2) / (share * static_cast<double>(rows_)));
        before += own;
    }
    return out;
}

std::vector<std::uint64_t> FilterRows::cluster_predicate(std::size_t query, double share, bool own) const
{
    const std::vector<std::size_t> part = parts(share);
    const std::vector<float> distances = distances_to_pivots(query);
    std::size_t chosen = part[static_cast<std::size_t>(std::ranges::min_element(distances) - distances.begin())];
    if (!own) {
        // The mean distance to the pivots of a cluster stands for that to its middle.
        double most = -1;
        for (std::size_t first = 0; first < regions;) {
            std::size_t end = first;
            double sum = 0;
            double rows = 0;
            for (; end < regions && part[end] == part[first]; ++end) {
                sum += distances[end] * static_cast<double>(region_rows_[end]);
                rows += static_cast<double>(region_rows_[end]);
            }
            if (rows > 0 && sum / rows > most) {
                most = sum / rows;
                chosen = part[first];
            }
            first = end;
        }
    }
    const auto first = std::ranges::lower_bound(part, chosen) - part.begin();
    const auto end = std::ranges::upper_bound(part, chosen) - part.begin();
    return range_predicate(1, static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(end - 1));
}

std::vector<std::uint64_t> FilterRows::list_predicate(std::size_t query, double share, bool nearest) const
{
    const std::vector<float> distances = distances_to_pivots(query);
    std::vector<std::uint64_t> order(regions);
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    std::ranges::sort(order, [&](std::uint64_t a, std::uint64_t b) {
        return nearest ? distances[a] < distances[b] : distances[a] > distances[b];
    });
    std::vector<std::uint64_t> chosen;
    std::size_t rows = 0;
    for (std::size_t i = 0; i < regions && static_cast<double>(rows) < share * static_cast<double>(rows_); ++i) {
        chosen.push_back(order[i]);
        rows += region_rows_[order[i]];
    }
    std::ranges::sort(chosen);
    std::vector<std::uint64_t> words{1, 0};
    for (const std::uint64_t code : chosen) {
        if (words.size() > 2 && words.back() + 1 == code) {
            words.back() = code;
        } else {
            words.insert(words.end(), {code, code});
        }
    }
    words[1] = 1 | std::uint64_t{(words.size() - 2) / 2} << 32;
    return words;
}

std::vector<std::uint64_t> FilterRows::predicate(std::size_t query, double share, Where where) const
{
    if (share >= 1) return range_predicate(where == Where::anywhere ? 0 : 1, 0, regions - 1);
    switch (where) {
        case Where::own:
        case Where::other:
            return cluster_predicate(query, share, where == Where::own);
        case Where::near:
        case Where::far:
            return list_predicate(query, share, where == Where::near);
        case Where::anywhere:
            break;
    }
    const auto wanted = std::max<std::uint64_t>(static_cast<std::uint64_t>(share * regions), 1);
    const std::uint64_t first = query * 37 % (regions - wanted + 1);
    return range_predicate(0, first, first + wanted - 1);
}

}  // namespace pgwarp::bench
