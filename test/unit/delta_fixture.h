// An index with rows that were inserted after its build, as a mirror holds them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "delta_places.h"
#include "engine/mirror/mirror.h"
#include "engine/search/search.h"
#include "methods/arrays.h"
#include "methods_fixture.h"

namespace pgwarp::test
{

inline constexpr std::size_t dimensions = 24;

// An index of the first rows, the others its delta: rows, from the index on, go to the logs in turns of 50.
class Fresh
{
public:
    // device: serves instead of the CPU; outlives this.
    Fresh(Method method, Metric metric, std::size_t rows, std::size_t fresh, const ParameterList& options = {},
          const MethodFactory* device = nullptr)
        : metric_(metric), device_(device), places_{rows, 50}, vectors_(random_rows(rows + fresh, dimensions, 7))
    {
        if (metric == Metric::cosine) test::normalise_rows(vectors_, dimensions);
        index_ = std::make_unique<test::Index>(
            method, metric, dimensions,
            std::vector<float>(vectors_.begin(), vectors_.begin() + static_cast<std::ptrdiff_t>(rows * dimensions)),
            options, pool, is_of_bits(metric) ? ElementType::bit : ElementType::float32);
        mirror = load();
    }

    std::shared_ptr<Mirror> load()
    {
        std::vector<ArrayShape> arrays = index_->builder->arrays();
        std::vector<std::uint32_t> blocks;
        std::vector<std::uint16_t> offsets;
        for (std::size_t row = 0; row < places_.indexed; ++row) {
            blocks.push_back(tid_of(row).block);
            offsets.push_back(tid_of(row).offset);
        }
        arrays.push_back(make_array_shape(array_tid_block, ArrayType::u32, places_.indexed, 1));
        arrays.push_back(make_array_shape(array_tid_offset, ArrayType::u16, places_.indexed, 1));
        auto loaded = std::make_shared<Mirror>(
            MirrorKey{}, index_->shape, index_->builder->effective_options(), places_.indexed, arrays,
            device_ != nullptr ? *device_ : *find_method(index_->shape.method), device_ != nullptr);
        const auto methods = static_cast<std::uint32_t>(arrays.size() - 2);
        for (std::uint32_t i = 0; i < methods; ++i) loaded->write(i, 0, index_->contents(arrays[i]));
        loaded->write(methods, 0, std::as_bytes(std::span(blocks)));
        loaded->write(methods + 1, 0, std::as_bytes(std::span(offsets)));
        loaded->finish_load(pool);
        return loaded;
    }

    // Rows [begin, end) of all.
    void append(Mirror& to, std::size_t begin, std::size_t end)
    {
        for (std::size_t row = begin; row < end; ++row) {
            const std::uint32_t log = places_.log_of(row);
            const std::uint64_t position =
                to.snapshot()->logs[log].known ? to.snapshot()->logs[log].end : DeltaPlaces::first_position;
            const Tid tid = tid_of(row);
            to.add_delta(log, position, {&tid, 1}, dense_rows(row_at(row), 1, dimensions));
        }
    }
    // Moves the rows behind `first` to this share of their distance from it. To be called before they are appended.
    void gather(std::size_t first, float share)
    {
        for (std::size_t i = (first + 1) * dimensions; i < vectors_.size(); ++i) {
            const float centre = vectors_[first * dimensions + i % dimensions];
            vectors_[i] = centre + share * (vectors_[i] - centre);
        }
        if (metric_ == Metric::cosine) test::normalise_rows(vectors_, dimensions);
    }
    // Appends all delta rows in `steps` steps, with a part after each step but the last `plain` ones.
    void append_in_parts(Mirror& to, std::size_t steps, std::size_t plain = 0)
    {
        const std::size_t fresh = rows() - places_.indexed;
        for (std::size_t step = 0; step < steps; ++step) {
            append(to, places_.indexed + fresh * step / steps, places_.indexed + fresh * (step + 1) / steps);
            if (step + plain < steps) to.add_part(pool, [](std::uint64_t) {});
        }
    }
    // Marks rows dead, wherever they are.
    void kill(Mirror& in, const std::set<std::size_t>& dead, std::uint64_t version)
    {
        in.add_tombstones(version, places_.tombstones(dead, rows()));
    }

    SearchAnswer search(const std::shared_ptr<Mirror>& in, const std::vector<float>& queries, std::uint32_t k,
                        std::int64_t effort = 0, SearchMode mode = SearchMode::normal, SearchCursor after = {},
                        const ParameterList& parameters = {})
    {
        SearchSettings settings;
        settings.mirror = in;
        settings.k = k;
        settings.effort = effort;
        settings.parameters = parameters;
        settings.mode = mode;
        settings.after = after;
        settings.want_places = true;
        SearchAnswer answer;
        run_search(settings, dense_rows(queries.data(), queries.size() / dimensions, dimensions), nullptr, pool,
                   answer);
        return answer;
    }

    std::vector<std::size_t> truth(const float* query, std::size_t k, const std::set<std::size_t>& dead = {}) const
    {
        std::vector<std::pair<double, std::size_t>> all;
        for (std::size_t row = 0; row < rows(); ++row) {
            if (!dead.contains(row)) all.emplace_back(canonical_distance(metric_, query, row_at(row), dimensions), row);
        }
        std::sort(all.begin(), all.end());
        all.resize(std::min(k, all.size()));
        std::vector<std::size_t> nearest;
        for (const auto& [distance, row] : all) nearest.push_back(row);
        return nearest;
    }
    // The number of these rows that are among the nearest. With bits, rows as near as the last of these count as right.
    std::size_t hits(const std::set<std::size_t>& rows, const float* query, std::size_t k,
                     const std::set<std::size_t>& dead) const
    {
        const std::vector<std::size_t> nearest = truth(query, k, dead);
        const double farthest = canonical_distance(metric_, query, row_at(nearest.back()), dimensions);
        std::size_t count = 0;
        for (const std::size_t row : rows) {
            const bool near = is_of_bits(metric_)
                                  ? canonical_distance(metric_, query, row_at(row), dimensions) <= farthest
                                  : std::find(nearest.begin(), nearest.end(), row) != nearest.end();
            count += near ? 1 : 0;
        }
        return count;
    }
    // The share of the true neighbours found; none that is dead, none twice.
    double recall(const SearchAnswer& answer, const std::vector<float>& queries, std::uint32_t k,
                  const std::set<std::size_t>& dead = {}) const
    {
        std::size_t at = 0;
        double found = 0;
        for (std::size_t q = 0; q < answer.counts.size(); ++q) {
            EXPECT_EQ(answer.counts[q], k);
            std::set<std::size_t> seen;
            for (const std::size_t end = at + answer.counts[q]; at < end; ++at) {
                const std::size_t row = row_of(answer.results[at].tid);
                EXPECT_FALSE(dead.contains(row));
                EXPECT_TRUE(seen.insert(row).second);
            }
            found += static_cast<double>(hits(seen, queries.data() + q * dimensions, k, dead));
        }
        return found / static_cast<double>(answer.counts.size() * k);
    }

    std::vector<float> queries(std::size_t count) const
    {
        std::vector<float> rows = random_rows(rows_of_cluster + count, dimensions, 7);
        rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows_of_cluster * dimensions));
        if (metric_ == Metric::cosine) test::normalise_rows(rows, dimensions);
        return rows;
    }

    std::size_t rows() const { return vectors_.size() / dimensions; }
    const float* row_at(std::size_t row) const { return vectors_.data() + row * dimensions; }
    const std::vector<float>& vectors() const { return vectors_; }
    std::size_t indexed() const { return places_.indexed; }
    const test::Index& index() const { return *index_; }

    ThreadPool pool{2};
    std::shared_ptr<Mirror> mirror;

private:
    static constexpr std::size_t rows_of_cluster = 20000;  // of the same clusters as the rows, but others

    Metric metric_;
    const MethodFactory* device_;
    DeltaPlaces places_;
    std::vector<float> vectors_;
    std::unique_ptr<test::Index> index_;
};

inline std::set<std::size_t> every(std::size_t step, std::size_t rows)
{
    std::set<std::size_t> chosen;
    for (std::size_t row = 0; row < rows; row += step) chosen.insert(row);
    return chosen;
}

inline void expect_same(const SearchAnswer& a, const SearchAnswer& b)
{
    ASSERT_EQ(a.counts, b.counts);
    ASSERT_EQ(a.places, b.places);
    for (std::size_t i = 0; i < a.results.size(); ++i) {
        EXPECT_EQ(a.results[i].tid, b.results[i].tid);
        EXPECT_EQ(a.results[i].distance, b.results[i].distance);
    }
}

}  // namespace pgwarp::test
