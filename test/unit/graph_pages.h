// A graph index as pages hold it, and what merges make of it.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "index/arrays.h"
#include "index/graph/edge_changes.h"
#include "index/graph/edges.h"
#include "index/graph/graph.h"
#include "index_fixture.h"

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

    void grow(std::span<const float> rows, ThreadPool& pool)
    {
        const std::size_t dimensions = shape_.dimensions;
        const auto extender = find_method(Method::graph)->make_extender(shape_, options_);
        for (const StoredPages& array : arrays_) {
            for (std::size_t offset = 0; offset < array.bytes.size(); offset += 10007) {
                const std::size_t length = std::min<std::size_t>(10007, array.bytes.size() - offset);
                extender->give(array.shape, offset, std::span(array.bytes).subspan(offset, length));
            }
        }
        RowBuffer added(dimensions);
        for (std::size_t i = 0; i < rows.size() / dimensions; ++i) {
            const Tid tid{static_cast<std::uint32_t>(i), 1, 0};
            added.append({&tid, 1}, rows.subspan(i * dimensions, dimensions));
        }
        added.sort_by_tid();
        const std::size_t old_rows = find("neighbours")->shape.rows;
        extender->run(added, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
        for (const ArrayShape& made : extender->arrays()) take(*extender, made, old_rows);
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
    // Arrays of rows, and of changes, grow by what was made; neighbours of all rows are written anew.
    void take(const Builder& extender, const ArrayShape& made, std::size_t old_rows)
    {
        const std::string name = made.name;
        const bool whole =
            name == "half_scale" || name == array_seeds || (name == array_neighbours && made.rows > old_rows);
        if (name == array_neighbours && whole)
            std::erase_if(arrays_,
                          [](const StoredPages& array) { return array.shape.name == std::string("edge_changes"); });
        auto* present = const_cast<StoredPages*>(find(name));
        if (present == nullptr) {
            present = &arrays_.emplace_back(StoredPages{made, {}});
            present->shape.rows = 0;
        }
        std::vector<std::byte> bytes(made.bytes());
        extender.read(name, 0, bytes);
        if (whole) *present = {made, {}};
        if (!whole) present->shape.rows += made.rows;
        present->bytes.insert(present->bytes.end(), bytes.begin(), bytes.end());
    }

    IndexShape shape_;
    ParameterList options_;
    std::vector<StoredPages> arrays_;
};

}  // namespace pgwarp::test
