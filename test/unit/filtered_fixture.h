// An index whose rows have attributes, with delta rows and dead ones, as a mirror holds it; searches with predicates,
// and what they must find.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "delta_places.h"
#include "engine/mirror/mirror.h"
#include "engine/search/delta_search.h"
#include "engine/search/search.h"
#include "methods/arrays.h"
#include "methods/rows/owned_rows.h"
#include "methods_fixture.h"
#include "predicate_fixture.h"
#include "tid_bitmap_fixture.h"

namespace pgwarp::test
{

class Filtered
{
public:
    // all: the rows of the index, then those of its delta, in turns of 40 in each log. attributes [rows][columns].
    Filtered(const IndexShape& shape, const RowView& all, std::vector<std::uint64_t> attributes, std::size_t indexed,
             const ParameterList& options = {}, const MethodFactory* device = nullptr)
        : all_(all), attributes_(std::move(attributes)), places_{indexed, 40}, device_(device)
    {
        rows_ = all_.view();
        if (shape.attribute_count > 0) rows_.attributes = attributes_.data();
        rows_.attribute_count = shape.attribute_count;
        index_ = std::make_unique<Index>(shape, rows_.slice(0, indexed), options, pool);
        load();
    }

    std::size_t rows() const { return rows_.count; }
    std::uint32_t columns() const { return static_cast<std::uint32_t>(rows_.attribute_count); }
    const IndexShape& shape() const { return index_->shape; }
    const Builder& builder() const { return *index_->builder; }
    const std::uint64_t* attributes(std::size_t row) const { return rows_.attributes + row * rows_.attribute_count; }
    RowView row(std::size_t i) const { return rows_.row(i); }

    // Appends the delta rows in steps, with a part after each but the last.
    void append(std::size_t steps = 1)
    {
        const std::size_t fresh = rows() - places_.indexed;
        for (std::size_t step = 0; step < steps; ++step) {
            for (std::size_t i = fresh * step / steps; i < fresh * (step + 1) / steps; ++i)
                append_row(places_.indexed + i);
            const bool has_parts = find_method(shape().method)->part_options != nullptr;
            if (step + 1 < steps && has_parts) mirror->add_part(pool, [](std::uint64_t) {});
        }
    }
    void kill(const std::set<std::size_t>& dead, std::uint64_t version)
    {
        mirror->add_tombstones(version, places_.tombstones(dead, rows()));
        dead_.insert(dead.begin(), dead.end());
    }

    SearchSettings settings(std::uint32_t k, std::int64_t effort = 0) const
    {
        SearchSettings settings;
        settings.mirror = mirror;
        settings.k = k;
        settings.effort = effort;
        settings.want_places = true;
        return settings;
    }
    SearchAnswer search(const SearchSettings& settings, const RowView& queries,
                        const std::vector<Predicate>& predicates)
    {
        QueryPredicates of_queries;
        for (const Predicate& predicate : predicates) of_queries.append(predicate);
        SearchAnswer answer;
        RowView bare = queries;
        bare.attributes = nullptr;
        bare.attribute_count = 0;
        run_search(settings, {bare, &of_queries}, nullptr, pool, answer);
        return answer;
    }

    // The addresses of the rows that pass, delta rows and dead ones too.
    std::shared_ptr<const TidBitmap> tids_of(std::span<const std::uint64_t> predicate) const
    {
        std::set<Tid> tids;
        for (std::size_t row = 0; row < rows(); ++row)
            if (passes(predicate, attributes(row))) tids.insert(tid_of(row));
        return std::make_shared<const TidBitmap>(bitmap_of(tids, {}));
    }

    bool lives(std::size_t row, std::span<const std::uint64_t> predicate) const
    {
        return !dead_.contains(row) && passes(predicate, attributes(row));
    }
    std::size_t count(std::span<const std::uint64_t> predicate, bool dead_too = false) const
    {
        std::size_t count = 0;
        for (std::size_t row = 0; row < rows(); ++row)
            count += (dead_too ? passes(predicate, attributes(row)) : lives(row, predicate)) ? 1 : 0;
        return count;
    }
    double distance(const RowView& query, std::size_t row) const
    {
        if (mirror->searcher().compares_rows()) {
            double distance = 0;
            mirror->searcher().compare_rows(query, rows_.row(row), {&distance, 1});
            return ordered_distance(distance);
        }
        return ordered_distance(canonical_distance(mirror->metric(), query.values, rows_.row(row).values, rows_.width));
    }
    // The k nearest that pass, as (distance, row) in the order of answers.
    std::vector<std::pair<double, std::size_t>> truth(const RowView& query, std::size_t k,
                                                      std::span<const std::uint64_t> predicate) const
    {
        std::vector<std::tuple<double, std::uint64_t, std::size_t>> all;
        for (std::size_t row = 0; row < rows(); ++row)
            if (lives(row, predicate)) all.emplace_back(distance(query, row), place_of(row), row);
        std::sort(all.begin(), all.end());
        std::vector<std::pair<double, std::size_t>> nearest;
        for (std::size_t i = 0; i < std::min(k, all.size()); ++i)
            nearest.emplace_back(std::get<0>(all[i]), std::get<2>(all[i]));
        return nearest;
    }
    std::uint64_t place_of(std::size_t row) const { return places_.place_of(row); }

    ThreadPool pool{2};
    std::shared_ptr<Mirror> mirror;

private:
    void append_row(std::size_t row)
    {
        const DeltaView log = mirror->snapshot()->logs[places_.log_of(row)];
        const Tid tid = tid_of(row);
        mirror->add_delta(places_.log_of(row), log.known ? log.end : DeltaPlaces::first_position, {&tid, 1},
                          rows_.row(row));
    }
    void load()
    {
        std::vector<ArrayShape> arrays = index_->builder->arrays();
        const std::size_t of_method = arrays.size();
        arrays.push_back(make_array_shape(array_tid_block, ArrayType::u32, places_.indexed, 1));
        arrays.push_back(make_array_shape(array_tid_offset, ArrayType::u16, places_.indexed, 1));
        if (columns() > 0)
            arrays.push_back(make_array_shape(array_attributes, ArrayType::u64, places_.indexed, columns()));
        mirror = std::make_shared<Mirror>(MirrorKey{}, shape(), index_->builder->effective_options(), places_.indexed,
                                          arrays, device_ != nullptr ? *device_ : *find_method(shape().method),
                                          device_ != nullptr);
        std::vector<std::uint32_t> blocks;
        std::vector<std::uint16_t> offsets;
        for (std::size_t row = 0; row < places_.indexed; ++row) {
            blocks.push_back(tid_of(row).block);
            offsets.push_back(tid_of(row).offset);
        }
        std::uint32_t array = 0;
        for (; array < of_method; ++array) mirror->write(array, 0, index_->contents(arrays[array]));
        mirror->write(array++, 0, std::as_bytes(std::span(blocks)));
        mirror->write(array++, 0, std::as_bytes(std::span(offsets)));
        if (columns() > 0)
            mirror->write(array, 0, std::as_bytes(std::span(attributes_).first(places_.indexed * columns())));
        mirror->check_complete();
        mirror->finish_load(pool);
    }

    OwnedRows all_;
    std::vector<std::uint64_t> attributes_;
    RowView rows_;
    DeltaPlaces places_;
    const MethodFactory* device_;
    std::unique_ptr<Index> index_;
    std::set<std::size_t> dead_;
};

inline IndexShape shape_with_attributes(Method method, ElementType element, Metric metric, std::size_t dimensions,
                                        std::size_t columns)
{
    IndexShape shape = Index::shape_of(method, metric, dimensions, element);
    shape.attribute_count = static_cast<decltype(shape.attribute_count)>(columns);
    return shape;
}

}  // namespace pgwarp::test
