// Reads files, and generates rows in pieces.
#include "data.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <future>
#include <stdexcept>

#include "../curve_data.h"
#include "../described.h"
#include "../gpu/bench_data.h"
#include "numeric/distance.h"

namespace pgwarp::bench::pqtree
{

namespace
{

constexpr std::size_t piece_rows = std::size_t{1} << 21;  // of many rows
constexpr std::size_t most_copied = 4000000;              // rows that are copied for each build

// The nearest rows of queries, among rows that come in pieces, by the complete method.
class TrueNeighbours
{
public:
    TrueNeighbours(const DataSet& data, const Device& device) : data_(data), device_(device), best_(data.asked()) {}

    void compare(std::span<const float> rows, std::size_t first, ThreadPool& pool)
    {
        IndexShape shape{};
        shape.method = complete_method().method;
        shape.element = ElementType::float32;
        shape.metric = static_cast<std::uint8_t>(data_.metric);
        shape.dimensions = static_cast<std::uint32_t>(data_.dimensions);
        const char* vectors = array_name(complete_method(), ArrayRole::vectors);
        const std::vector<ArrayShape> arrays{
            make_array_shape(vectors, ArrayType::f32, rows.size() / data_.dimensions, data_.dimensions)};
        const auto searcher = device_.method(shape.method)->make_searcher(shape, {}, arrays);
        searcher->write(vectors, 0, std::as_bytes(rows));
        searcher->finish_load(pool);
        SearchBatch batch;
        batch.queries = data_.queries;
        batch.count = data_.asked();
        batch.k = true_neighbours;
        std::vector<std::vector<RowResult>> found;
        searcher->search(batch, found, pool);
        pool.parallel_for(batch.count, 64, [&](std::size_t begin, std::size_t end) {
            for (std::size_t q = begin; q < end; ++q) merge(best_[q], found[q], first);
        });
    }
    std::vector<std::vector<std::uint32_t>> rows() const
    {
        std::vector<std::vector<std::uint32_t>> rows(best_.size());
        for (std::size_t q = 0; q < best_.size(); ++q)
            for (const RowResult& row : best_[q]) rows[q].push_back(row.row);
        return rows;
    }

private:
    static void merge(std::vector<RowResult>& best, std::vector<RowResult> found, std::size_t first)
    {
        for (RowResult& row : found) row.row += static_cast<std::uint32_t>(first);
        std::vector<RowResult> all;
        std::ranges::merge(best, found, std::back_inserter(all), {}, &RowResult::distance, &RowResult::distance);
        all.resize(std::min<std::size_t>(all.size(), true_neighbours));
        best = std::move(all);
    }

    const DataSet& data_;
    const Device& device_;
    std::vector<std::vector<RowResult>> best_;
};

// Rows of bench_data.h's generate(), turned by a fixed orthogonal matrix, any piece of them.
class GeneratedRows
{
public:
    GeneratedRows(std::size_t rows, std::size_t dimensions)
        : dimensions_(dimensions), clusters_(dimensions, rows / 200 + 1)
    {
        for (const double value : random_rotation(dimensions, 5)) rotation_.push_back(static_cast<float>(value));
    }
    // `first` is a multiple of ClusteredRows::block.
    void write(std::size_t first, std::size_t count, unsigned seed, float* out, ThreadPool& pool) const
    {
        constexpr std::size_t block = ClusteredRows::block;
        pool.parallel_for((count + block - 1) / block, 1, [&](std::size_t begin, std::size_t end) {
            std::vector<float> rows(block * dimensions_);
            for (std::size_t at = begin * block; at < std::min(end * block, count); at += block) {
                const std::size_t some = std::min(block, count - at);
                clusters_.write(first + at, some, seed, rows.data());
                // Scores of inner product are negative products: rows turned, and mirrored.
                score_tile(Metric::inner_product, rows.data(), some, rotation_.data(), nullptr, dimensions_,
                           dimensions_, out + at * dimensions_);
            }
        });
    }

private:
    std::size_t dimensions_;
    ClusteredRows clusters_;
    std::vector<float> rotation_;
};

// Makes an empty data set of generated rows with its queries.
DataSet generated_queries(const DataRequest& request, const GeneratedRows& rows, ThreadPool& pool)
{
    DataSet data;
    data.name = request.name;
    data.metric = request.metric;
    data.dimensions = request.dimensions;
    data.rows = request.rows;
    data.queries.resize(request.queries * data.dimensions);
    rows.write(0, request.queries, 2, data.queries.data(), pool);
    return data;
}

using Pieces = std::array<std::vector<float>, 2>;

// Calls use(rows, first) for each piece, by turns in the memory of either of `pieces`: a piece stays as it is until the
// call after the next.
template <class Use>
void write_pieces(const GeneratedRows& rows, const DataSet& data, ThreadPool& pool, Pieces& pieces, const Use& use)
{
    for (std::size_t first = 0; first < data.rows; first += piece_rows) {
        const std::size_t count = std::min(piece_rows, data.rows - first);
        std::vector<float>& piece = pieces[first / piece_rows % 2];
        piece.resize(count * data.dimensions);
        rows.write(first, count, 1, piece.data(), pool);
        use(piece, first);
    }
}

// Rows that builds share. A thread of its own copies a piece, in order, while the next one is made.
void share_pieces(const GeneratedRows& rows, DataSet& data, TrueNeighbours& truth, ThreadPool& pool)
{
    data.shared = std::make_shared<RowBuffer>(data.dimensions);
    Pieces pieces;
    std::future<void> copied;  // ends before the pieces do
    write_pieces(rows, data, pool, pieces, [&](std::span<const float> piece, std::size_t first) {
        if (copied.valid()) copied.get();
        copied = std::async(std::launch::async, [&data, piece, first] {
            std::vector<Tid> tids(piece.size() / data.dimensions);
            for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(first + i), 1, 0};
            data.shared->append(tids, piece);
        });
        truth.compare(piece, first, pool);
    });
    if (copied.valid()) copied.get();
    data.shared->sort_by_tid(&pool);
}

DataSet load_generated(const DataRequest& request, const Device& device, ThreadPool& pool)
{
    const GeneratedRows rows(request.rows, request.dimensions);
    DataSet data = generated_queries(request, rows, pool);
    TrueNeighbours truth(data, device);
    if (are_many(data.rows)) {
        share_pieces(rows, data, truth, pool);
    } else {
        data.base.resize(data.rows * data.dimensions);
        rows.write(0, data.rows, 1, data.base.data(), pool);
        truth.compare(data.base, 0, pool);
    }
    data.truth = truth.rows();
    return data;
}

}  // namespace

bool has_data(const DataRequest& request)
{
    const auto exists = [&](const std::string& file) { return std::filesystem::exists(request.folder + "/" + file); };
    if (request.folder.empty() || request.name == "generated" || request.name == "clustered") return true;
    if (request.name == "sift") return exists("base.u8") && (exists("query.bvecs") || exists("query.u8"));
    return exists(request.name + "-base.u8") && exists(request.name + "-query.u8");
}

bool are_many(std::size_t rows)
{
    return rows > most_copied;
}

DataSet pass_generated(const DataRequest& request, const Device& device, ThreadPool& pool,
                       const std::function<void(std::span<const float>, std::size_t)>& use)
{
    const GeneratedRows rows(request.rows, request.dimensions);
    DataSet data = generated_queries(request, rows, pool);
    TrueNeighbours truth(data, device);
    Pieces pieces;
    write_pieces(rows, data, pool, pieces, [&](std::span<const float> piece, std::size_t first) {
        truth.compare(piece, first, pool);
        use(piece, first);
    });
    data.truth = truth.rows();
    return data;
}

DataSet load_data(const DataRequest& request, const Device& device, ThreadPool& pool)
{
    if (request.name == "generated") return load_generated(request, device, pool);
    DataSet data;
    data.name = request.name;
    data.metric = request.metric;
    CurveSource source;
    source.rows = request.rows;
    source.queries = request.queries;
    source.metric = request.metric;
    source.dimensions = request.name == "fashion" ? 784 : 128;
    const std::string folder = request.folder + "/";
    if (request.folder.empty()) {
        source.dimensions = 16;
    } else if (request.name == "sift") {
        const bool flat = std::filesystem::exists(folder + "query.u8");
        source.base = {folder + "base.u8"};
        source.query = folder + (flat ? "query.u8" : "query.bvecs");
    } else if (request.name != "clustered") {
        source.base = {folder + request.name + "-base.u8"};
        source.query = folder + request.name + "-query.u8";
    }
    CurveData loaded = load_curve_data(source, pool);
    data.dimensions = loaded.dimensions;
    data.rows = loaded.rows();
    data.base = std::move(loaded.base);
    data.queries = std::move(loaded.queries);
    TrueNeighbours truth(data, device);
    truth.compare(data.base, 0, pool);
    data.truth = truth.rows();
    return data;
}

}  // namespace pgwarp::bench::pqtree
