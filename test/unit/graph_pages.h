// A graph index as pages hold it, and merges of it, for tests of methods.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph_reference.h"
#include "methods/arrays.h"
#include "methods/graph/edge_changes.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods_fixture.h"
#include "protocol/merge_build.h"

namespace pgwarp::test
{

struct StoredPages {
    ArrayShape shape;
    std::vector<std::byte> bytes;
};

class Pages
{
public:
    explicit Pages(const Index& index) : shape_(index.shape), options_(index.builder->effective_options())
    {
        for (const ArrayShape& shape : index.builder->arrays()) arrays_.push_back({shape, index.contents(shape)});
    }

    // Options of a merge; the merge returns the curve of recall.
    struct Wanted {
        std::vector<bool> dead = {};  // of the rows that there are
        bool leave_out = false;
        bool measure = false;
    };
    void grow(std::span<const float> rows, ThreadPool& pool) { grow(rows, {}, pool); }
    Calibration grow(std::span<const float> rows, const Wanted& wanted, ThreadPool& pool)
    {
        const std::size_t dimensions = shape_.dimensions;
        ParameterList options = options_;
        if (wanted.leave_out) options.set(option_leave_out, 1);
        if (wanted.measure) options.set(option_measure, 1);
        const auto merge_builder = find_method(Method::graph)->make_merge_builder(shape_, options);
        if (!wanted.dead.empty()) {
            const std::vector<std::uint64_t> bits = bitmap_of(wanted.dead);
            merge_builder->give(make_array_shape(array_dead_rows, ArrayType::u64, bits.size(), 1), 0,
                                std::as_bytes(std::span(bits)));
        }
        for (const StoredPages& array : arrays_) {
            for (std::size_t offset = 0; offset < array.bytes.size(); offset += 10007) {
                const std::size_t length = std::min<std::size_t>(10007, array.bytes.size() - offset);
                merge_builder->give(array.shape, offset, std::span(array.bytes).subspan(offset, length));
            }
        }
        RowBuffer added(dimensions);
        for (std::size_t i = 0; i < rows.size() / dimensions; ++i) {
            const Tid tid{static_cast<std::uint32_t>(i), 1, 0};
            added.append({&tid, 1}, rows.subspan(i * dimensions, dimensions));
        }
        added.sort_by_tid();
        merge_builder->run(added, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
        if (wanted.leave_out) leave_out(wanted.dead);
        for (const ArrayShape& made : merge_builder->arrays()) take(*merge_builder, made, rows.size() / dimensions);
        return merge_builder->calibration();
    }
    static std::vector<std::uint64_t> bitmap_of(const std::vector<bool>& rows)
    {
        std::vector<std::uint64_t> bits((rows.size() + 63) / 64, 0);
        for (std::size_t row = 0; row < rows.size(); ++row) bits[row / 64] |= std::uint64_t{rows[row]} << (row % 64);
        return bits;
    }

    std::vector<ArrayShape> shapes() const
    {
        std::vector<ArrayShape> shapes;
        for (const StoredPages& array : arrays_) shapes.push_back(array.shape);
        return shapes;
    }
    const IndexShape& shape() const { return shape_; }
    const ParameterList& options() const { return options_; }
    std::unique_ptr<Searcher> load(ThreadPool& pool) const
    {
        return load(find_method(Method::graph)->make_searcher(shape_, options_, shapes()), pool);
    }
    std::unique_ptr<Searcher> load(std::unique_ptr<Searcher> searcher, ThreadPool& pool) const
    {
        for (const StoredPages& array : arrays_) searcher->write(array.shape.name, 0, array.bytes);
        searcher->finish_load(pool);
        return searcher;
    }

    template <class Element>
    std::vector<Element> values(const char* name) const
    {
        const StoredPages* array = find(name);
        std::vector<Element> out(array == nullptr ? 0 : array->bytes.size() / sizeof(Element));
        if (!out.empty()) std::memcpy(out.data(), array->bytes.data(), array->bytes.size());
        return out;
    }
    GraphEdges edges() const
    {
        GraphEdges edges;
        edges.degree = static_cast<std::size_t>(options_.get("degree", 0));
        const auto neighbours = values<std::uint32_t>(array_neighbours);
        edges.neighbours.assign(neighbours.begin(), neighbours.end());
        apply_changes(edges, values<EdgeChange>(array_edge_changes));
        return edges;
    }
    const StoredPages* find(const std::string& name) const
    {
        for (const StoredPages& array : arrays_) {
            if (name == array.shape.name) return &array;
        }
        return nullptr;
    }
    bool same_as(const Pages& other) const
    {
        if (arrays_.size() != other.arrays_.size()) return false;
        for (const StoredPages& array : arrays_) {
            const StoredPages* twin = other.find(array.shape.name);
            if (twin == nullptr || twin->bytes != array.bytes) return false;
        }
        return true;
    }

private:
    // Copies the rows' arrays of live rows, as merges do.
    void leave_out(const std::vector<bool>& dead)
    {
        for (StoredPages& array : arrays_) {
            const std::string name = array.shape.name;
            if (name != "vectors" && name != "half" && name != array_bits) continue;
            const std::size_t width = array.bytes.size() / array.shape.rows;
            std::vector<std::byte> kept;
            for (std::size_t row = 0; row < array.shape.rows; ++row) {
                const auto begin = array.bytes.begin() + static_cast<std::ptrdiff_t>(row * width);
                if (row >= dead.size() || !dead[row])
                    kept.insert(kept.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
            }
            array.shape.rows = kept.size() / width;
            array.bytes = std::move(kept);
        }
    }

    // Arrays of rows, and of changes, grow by the merge's output; neighbours of all rows are written anew.
    void take(const Builder& merge_builder, const ArrayShape& made, std::size_t new_rows)
    {
        const std::string name = made.name;
        const bool whole =
            name == "half_scale" || name == array_seeds || (name == array_neighbours && made.rows != new_rows);
        if (name == array_neighbours && whole)
            std::erase_if(arrays_,
                          [](const StoredPages& array) { return array.shape.name == std::string("edge_changes"); });
        auto* present = const_cast<StoredPages*>(find(name));
        if (present == nullptr) {
            present = &arrays_.emplace_back(StoredPages{made, {}});
            present->shape.rows = 0;
        }
        std::vector<std::byte> bytes(made.bytes());
        merge_builder.read(name, 0, bytes);
        if (whole) *present = {made, {}};
        if (!whole) present->shape.rows += made.rows;
        present->bytes.insert(present->bytes.end(), bytes.begin(), bytes.end());
    }

    IndexShape shape_;
    ParameterList options_;
    std::vector<StoredPages> arrays_;
};

inline std::size_t count_of(const std::vector<bool>& rows)
{
    return static_cast<std::size_t>(std::count(rows.begin(), rows.end(), true));
}

// Live rows can all be reached, dead ones not; edges lead to live rows.
inline void expect_sound(const Pages& pages, const std::vector<bool>& dead = {})
{
    const GraphEdges edges = pages.edges();
    const auto is_dead = [&](std::uint32_t row) { return row < dead.size() && dead[row]; };
    for (std::uint32_t row = 0; row < edges.count(); ++row) {
        std::set<std::uint32_t> seen;
        bool ended = false;
        for (const std::uint32_t to : edges.of(row)) {
            ended = ended || to == no_neighbour;
            if (ended) {
                ASSERT_EQ(to, no_neighbour) << row;
                continue;
            }
            ASSERT_LT(to, edges.count());
            ASSERT_NE(to, row);
            ASSERT_FALSE(is_dead(to)) << row;
            ASSERT_FALSE(is_dead(row)) << row;
            ASSERT_TRUE(seen.insert(to).second) << row;
        }
    }
    const auto seeds = pages.values<std::uint32_t>(array_seeds);
    for (const std::uint32_t seed : seeds) ASSERT_FALSE(is_dead(seed));
    EXPECT_EQ(std::set<std::uint32_t>(seeds.begin(), seeds.end()).size(), seeds.size());
    EXPECT_EQ(count_reachable(edges, seeds[0]), edges.count() - count_of(dead));
}

}  // namespace pgwarp::test
