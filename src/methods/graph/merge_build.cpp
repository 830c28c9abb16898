// Merges: the arrays of an index come in pieces, dead rows go, new rows are inserted in batches.
#include "methods/graph/merge_build.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_set>

#include "methods/arrays.h"
#include "methods/description.h"
#include "methods/graph/build_loop.h"
#include "methods/graph/edge_changes.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/insertion.h"
#include "methods/graph/remeasure.h"
#include "methods/graph/repair.h"
#include "methods/graph/stored_rows.h"
#include "methods/rows/half_rows.h"
#include "protocol/merge_build.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t batch_rows = 512;  // rows that are searched for before any of them has edges
constexpr std::size_t merge_piece_rows = 2048;
constexpr std::size_t merge_search_width = 2;  // rows that a search keeps, times those that edges are chosen from
constexpr std::size_t many_rows = 10000;       // from this number of rows on memory for new ones is reserved
constexpr std::size_t usual_growth = 16;       // new rows that memory is reserved for: one for so many old ones
constexpr std::size_t changes_share = 2;       // changes may take the neighbours' bytes, divided by this

struct Given {
    ArrayShape shape;
    std::uint64_t bytes;  // received
};

class GraphMergeBuilder : public Builder
{
public:
    GraphMergeBuilder(const IndexShape& shape, const ParameterList& options)
        : shape_(shape),
          metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          options_(GraphOptions::resolve(options, dimensions_)),
          leaves_out_(options.get(option_leave_out, 0) != 0),
          measures_(options.get(option_measure, 0) != 0)
    {
        edges_.degree = options_.degree;
        half_.codec.mean.resize(dimensions_);
    }

    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override;
    std::vector<ArrayShape> arrays() const override;
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override;
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return options_.as_parameters(); }

private:
    std::size_t words() const { return options_.bits / 32; }
    std::size_t all() const { return old_ + new_; }
    std::span<std::byte> place_of(const ArrayShape& shape);
    void check_given();
    void count_dead();
    void take_rows(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool);
    void encode_halves(std::span<const float> rows, ThreadPool& pool);
    void change_graph(const RowScores& scores, const BuildProgress& progress, ThreadPool& pool);
    void insert_rows(const RowScores& scores, const BuildProgress& progress, ThreadPool& pool);
    void add_seeds();
    void leave_out_dead();
    bool rewrites() const;

    IndexShape shape_;
    Metric metric_;
    std::size_t dimensions_;
    GraphOptions options_;
    bool leaves_out_;
    bool measures_;
    Calibration calibration_;
    std::vector<Given> given_;
    std::size_t old_ = 0;
    std::size_t new_ = 0;
    std::size_t dead_count_ = 0;
    std::vector<std::uint64_t> dead_;  // bitmap of all rows; empty: none is
    std::vector<std::uint32_t> seeds_;
    GraphEdges edges_;  // of all rows
    std::vector<EdgeChange> changes_;
    std::size_t old_changes_ = 0;  // of these
    HalfRows half_;
    BulkVector<std::uint16_t> halves_;
    std::vector<float> projection_;
    BulkVector<std::uint32_t> bits_;
    BulkVector<float> vectors_;  // of all rows
};

// Returns the memory of an array, allocated at its first piece.
std::span<std::byte> GraphMergeBuilder::place_of(const ArrayShape& shape)
{
    std::vector<ArrayShape> known = graph_arrays(shape_, options_, shape.rows, shape.rows);
    known.push_back(make_array_shape(array_edge_changes, ArrayType::u32, shape.rows, 3));
    known.push_back(make_array_shape(array_dead_rows, ArrayType::u64, shape.rows, 1));
    const ArrayShape* expected = find_array(known, shape.name);
    if (expected == nullptr) throw BadRequest("an array that the index has no use for");
    require_array(std::span(&shape, 1), expected->name, expected->type, expected->rows, expected->width);
    const auto room = [&](auto& values, std::uint64_t width) {
        if (values.size() != shape.rows * width) {
            if (shape.rows >= many_rows) values.reserve((shape.rows + shape.rows / usual_growth) * width);
            values.resize(shape.rows * width);
        }
        return std::as_writable_bytes(std::span(values));
    };
    const std::string name = shape.name;
    if (name == array_seeds) return room(seeds_, 1);
    if (name == array_neighbours) return room(edges_.neighbours, shape.width);
    if (name == array_edge_changes) return room(changes_, 1);
    if (name == array_dead_rows) return room(dead_, 1);
    if (name == array_vectors) return room(vectors_, shape.width);
    if (name == array_half) return room(halves_, shape.width);
    if (name == array_half_mean) return room(half_.codec.mean, shape.width);
    if (name == array_half_scale) return std::as_writable_bytes(std::span(half_.scale));
    if (name == array_bits) return room(bits_, shape.width);
    return room(projection_, shape.width);
}

void GraphMergeBuilder::give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (shape.rows > std::numeric_limits<std::uint32_t>::max()) throw BadRequest("too many rows for one segment");
    const auto same = [&](const Given& given) { return std::strcmp(given.shape.name, shape.name) == 0; };
    auto found = std::find_if(given_.begin(), given_.end(), same);
    if (found == given_.end()) found = given_.insert(given_.end(), {shape, 0});
    if (found->shape.rows != shape.rows) throw BadRequest("pieces of arrays of different lengths");
    write_piece(place_of(shape), offset, bytes);
    found->bytes += bytes.size();
}

// Checks that every array was received whole, and that its numbers are those of rows.
void GraphMergeBuilder::check_given()
{
    for (const Given& given : given_) {
        if (given.bytes != given.shape.bytes())
            throw BadRequest("array \"" + std::string(given.shape.name) + "\" was not given whole");
    }
    const bool bits = options_.vectors == GraphVectors::bits;
    const std::size_t rows = options_.vectors == GraphVectors::full ? vectors_.size() / dimensions_
                             : bits                                 ? bits_.size() / words()
                                                                    : halves_.size() / dimensions_;
    if (rows == 0 || rows != edges_.count() || seeds_.empty()) throw BadRequest("an index without rows is to grow");
    if (!dead_.empty() && dead_.size() != (rows + 63) / 64)
        throw BadRequest("the dead rows are those of another index");
    if (bits && projection_.empty()) throw BadRequest("array \"projection\" is missing");
    if (options_.vectors == GraphVectors::half) half_.take_scale();
    const auto exists = [&](std::uint32_t row) { return row < rows; };
    if (!std::all_of(seeds_.begin(), seeds_.end(), exists)) throw BadRequest("a seed is no row of its index");
    const auto known = [&](std::uint32_t row) { return row == no_neighbour || exists(row); };
    if (!std::all_of(edges_.neighbours.begin(), edges_.neighbours.end(), known))
        throw BadRequest("a neighbour is no row of its index");
}

void GraphMergeBuilder::encode_halves(std::span<const float> rows, ThreadPool& pool)
{
    halves_.resize(all() * dimensions_);
    pool.parallel_for(new_, merge_piece_rows, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            half_.codec.encode(rows.data() + i * dimensions_, halves_.data() + (old_ + i) * dimensions_);
    });
    half_.measure(rows, pool, nullptr);
}

// Appends the new rows in their stored form, and as floats where the index stores vectors.
void GraphMergeBuilder::take_rows(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
{
    progress.report("encoding rows", 0, new_);
    const std::span<const float> vectors = rows.vectors();
    if (options_.vectors == GraphVectors::bits) {
        bits_.resize(all() * words());
        pool.parallel_for(new_, merge_piece_rows, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                project_row(projection_, vectors.data() + i * dimensions_, dimensions_,
                            bits_.data() + (old_ + i) * words());
            }
        });
        return;
    }
    vectors_.resize(all() * dimensions_);
    std::copy(vectors.begin(), vectors.end(), vectors_.begin() + static_cast<std::ptrdiff_t>(old_ * dimensions_));
    if (options_.vectors != GraphVectors::half) return;
    encode_halves(vectors, pool);
    pool.parallel_for(old_, merge_piece_rows, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            half_.codec.decode(halves_.data() + i * dimensions_, vectors_.data() + i * dimensions_);
    });
}

// A batch of rows is searched for, in parallel, in the graph without it; each row is also compared with those of the
// batch before it. Then the rows get their edges one after the other, so that the graph does not depend on the number
// of threads.
void GraphMergeBuilder::insert_rows(const RowScores& scores, const BuildProgress& progress, ThreadPool& pool)
{
    std::vector<std::vector<std::uint32_t>> near(std::min(batch_rows, new_));
    for (std::size_t first = old_; first < all();) {
        progress.advance("inserting rows", first - old_, new_);
        const std::size_t count = std::min({batch_rows, all() - first, std::max<std::size_t>(first / 8, 1)});
        pool.parallel_for(count, 4, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                near[i] = find_near(scores, edges_, seeds_, static_cast<std::uint32_t>(first), first + i,
                                    options_.build_degree, merge_search_width * options_.build_degree, progress.cancel);
            }
        });
        for (std::size_t i = 0; i < count; ++i)
            link_row(edges_, scores, static_cast<std::uint32_t>(first + i), near[i]);
        first += count;
    }
}

// The graph of the live rows, old and new.
void GraphMergeBuilder::change_graph(const RowScores& scores, const BuildProgress& progress, ThreadPool& pool)
{
    if (dead_count_ > 0) unlink_dead(edges_, seeds_, {scores, dead_, options_.build_degree}, progress, pool);
    insert_rows(scores, progress, pool);
    add_seeds();
    connect_rows(edges_, seeds_, dead_, progress);
    if (measures_ && options_.vectors != GraphVectors::bits) {
        calibration_ = measure_changed_graph(
            {shape_, options_, scores, edges_, seeds_, dead_, vectors_, halves_, half_.codec.mean, half_.scale},
            progress, pool);
    }
}

void GraphMergeBuilder::run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
{
    check_given();
    old_ = edges_.count();
    new_ = rows.size();
    if (all() >= no_neighbour) throw BadRequest("too many rows for one segment");
    apply_changes(edges_, changes_);
    old_changes_ = changes_.size();
    const std::vector<std::uint32_t> before(edges_.neighbours.begin(), edges_.neighbours.end());
    count_dead();
    edges_.neighbours.resize(all() * edges_.degree, no_neighbour);
    take_rows(rows, progress, pool);
    if (options_.vectors == GraphVectors::bits) {
        change_graph(BitScores(bits_, words()), progress, pool);
    } else {
        const GraphSpace space(metric_, vectors_, dimensions_, pool);
        change_graph(SpaceScores(space), progress, pool);
    }
    append_changes(before, edges_, changes_);
    if (leaves_out_) leave_out_dead();
}

// Counts the dead rows, and extends the bitmap to the new rows.
void GraphMergeBuilder::count_dead()
{
    if (dead_.empty()) return;
    if (old_ % 64 != 0) dead_.back() &= (std::uint64_t{1} << (old_ % 64)) - 1;
    for (const std::uint64_t word : dead_) dead_count_ += static_cast<std::size_t>(std::popcount(word));
    if (dead_count_ == old_) throw BadRequest("an index without live rows is to grow");
    dead_.resize((all() + 63) / 64, 0);
}

// Adds seeds in parts that no seed reaches, and new rows until there are as many seeds as a build chooses.
void GraphMergeBuilder::add_seeds()
{
    const std::vector<std::uint32_t> live = rows_outside(dead_, all());
    pgwarp::add_seeds(edges_, live, most_seeds(live.size()), seeds_);
    const std::size_t wanted = std::max(seed_count(all() - dead_count_), seeds_.size());
    const std::size_t missing = std::min(wanted - seeds_.size(), new_);
    const std::unordered_set<std::uint32_t> present(seeds_.begin(), seeds_.end());
    for (std::size_t i = 0; i < missing; ++i) {
        const auto row = static_cast<std::uint32_t>(old_ + new_ * (2 * i + 1) / (2 * missing));
        if (!present.contains(row)) seeds_.push_back(row);
    }
}

// Renumbers rows: the new number of a row is its rank among live rows.
void GraphMergeBuilder::leave_out_dead()
{
    std::vector<std::uint32_t> numbers(all(), no_neighbour);
    std::uint32_t next = 0;
    for (std::size_t row = 0; row < all(); ++row)
        if (!bit_is_set(dead_, row)) numbers[row] = next++;
    GraphEdges live{edges_.degree, {}};
    live.neighbours.resize(next * edges_.degree);
    for (std::size_t row = 0; row < all(); ++row) {
        if (numbers[row] == no_neighbour) continue;
        const auto renumber = [&](std::uint32_t to) { return to == no_neighbour ? to : numbers[to]; };
        std::transform(edges_.of(row).begin(), edges_.of(row).end(), live.of(numbers[row]).begin(), renumber);
    }
    edges_ = std::move(live);
    for (std::uint32_t& seed : seeds_) seed = numbers[seed];
}

bool GraphMergeBuilder::rewrites() const
{
    return leaves_out_ ||
           changes_.size() * sizeof(EdgeChange) > old_ * edges_.degree * sizeof(std::uint32_t) / changes_share;
}

std::vector<ArrayShape> GraphMergeBuilder::arrays() const
{
    std::vector<ArrayShape> made;
    made.push_back(make_array_shape(array_seeds, ArrayType::u32, seeds_.size(), 1));
    if (options_.vectors == GraphVectors::half)
        made.push_back(make_array_shape(array_half_scale, ArrayType::f32, 1, 2));
    if (!rewrites() && changes_.size() > old_changes_)
        made.push_back(make_array_shape(array_edge_changes, ArrayType::u32, changes_.size() - old_changes_, 3));
    made.push_back(
        make_array_shape(array_neighbours, ArrayType::u32, rewrites() ? edges_.count() : new_, edges_.degree));
    made.push_back(graph_row_array(shape_, options_, new_));
    return made;
}

void GraphMergeBuilder::read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const
{
    const auto read_new = [&](const auto& values, std::size_t width) {
        read_piece(std::span(values).subspan(old_ * width), offset, out);
    };
    if (array == array_seeds) return read_piece(std::span<const std::uint32_t>(seeds_), offset, out);
    if (array == array_half_scale) return read_piece(std::span<const float>(half_.scale), offset, out);
    if (array == array_edge_changes)
        return read_piece(std::span<const EdgeChange>(changes_).subspan(old_changes_), offset, out);
    if (array == array_neighbours && rewrites())
        return read_piece(std::span<const std::uint32_t>(edges_.neighbours), offset, out);
    if (array == array_neighbours) return read_new(edges_.neighbours, edges_.degree);
    if (array == array_vectors) return read_new(vectors_, dimensions_);
    if (array == array_half) return read_new(halves_, dimensions_);
    if (array == array_bits) return read_new(bits_, words());
    throw BadRequest("unknown array of a graph that grows");
}

}  // namespace

std::unique_ptr<Builder> make_graph_merge_builder(const IndexShape& shape, const ParameterList& options)
{
    if (options.get(option_part, 0) != 0) return make_graph_builder(shape, options);
    return std::make_unique<GraphMergeBuilder>(shape, options);
}

}  // namespace pgwarp
