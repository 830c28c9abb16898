// Checks of an index of vectors that are the same for every method.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "methods_fixture.h"

namespace pgwarp::test
{

// Results come in order, and their values relate to canonical distances as the kind of result says.
inline void expect_values_within_bounds(const Index& index, const float* query, const std::vector<float>& rows,
                                        const std::vector<RowResult>& found)
{
    const std::size_t dimensions = index.shape.dimensions;
    const ResultKind kind = index.searcher->result_kind();
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double exact = canonical_distance(static_cast<Metric>(index.shape.metric), query,
                                                rows.data() + found[i].row * dimensions, dimensions);
        if (i > 0) {
            ASSERT_LE(found[i - 1].distance, found[i].distance);
        }
        if (kind == ResultKind::exact) {
            ASSERT_EQ(found[i].distance, exact);
        } else if (kind == ResultKind::lower_bound) {
            ASSERT_LE(found[i].distance, exact);
            ASSERT_NEAR(found[i].distance, exact, 0.01 * std::max(1.0, std::fabs(exact)));
        }
    }
}

// Continuations from the nearest row on offer every row once, in order of (distance, row). Returns all results.
inline std::vector<RowResult> expect_every_row_once(const Index& index, std::span<const float> query, std::size_t rows,
                                                    ThreadPool& pool)
{
    SearchBatch batch;
    batch.queries = query;
    batch.count = 1;
    batch.k = 64;
    std::vector<RowResult> all;
    std::vector<bool> seen(rows, false);
    RowResult last{-std::numeric_limits<double>::infinity(), 0};
    for (std::vector<RowResult> page;;) {
        index.searcher->search_exact(batch, last.distance, last.row, page, pool);
        if (page.empty()) break;
        for (const RowResult& result : page) {
            EXPECT_TRUE(result.distance > last.distance || (result.distance == last.distance && result.row > last.row));
            EXPECT_FALSE(seen[result.row]);
            seen[result.row] = true;
            last = result;
        }
        all.insert(all.end(), page.begin(), page.end());
    }
    EXPECT_EQ(all.size(), rows);
    return all;
}

// A merge of the same index encodes rows [first, first + count) of the build as the build did.
inline void expect_encoded_alike(const Index& index, const std::vector<float>& rows, std::size_t first,
                                 std::size_t count, ThreadPool& pool)
{
    const std::size_t dimensions = index.shape.dimensions;
    const std::size_t built = rows.size() / dimensions;
    const auto merge =
        find_method(index.shape.method)->make_merge_builder(index.shape, index.builder->effective_options());
    for (const ArrayShape& array : index.builder->arrays()) {
        if (array.rows == built) continue;
        const std::vector<std::byte> bytes = index.contents(array);
        for (std::size_t offset = 0; offset < bytes.size(); offset += 1001) {
            const std::size_t length = std::min<std::size_t>(1001, bytes.size() - offset);
            merge->give(array, offset, std::span(bytes).subspan(offset, length));
        }
    }
    RowBuffer added(dimensions);
    for (std::size_t i = first; i < first + count; ++i) {
        const Tid tid{static_cast<std::uint32_t>(i), 1, 0};
        added.append({&tid, 1}, {rows.data() + i * dimensions, dimensions});
    }
    merge->run(added, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    std::size_t compared = 0;
    for (const ArrayShape& array : merge->arrays()) {
        std::vector<std::byte> made(array.bytes());
        merge->read(array.name, 0, made);
        for (const ArrayShape& old : index.builder->arrays()) {
            if (std::strcmp(old.name, array.name) != 0) continue;
            const std::vector<std::byte> all = index.contents(old);
            const std::size_t width = array.rows == count ? all.size() / built : 0;
            const auto from = all.begin() + static_cast<std::ptrdiff_t>(first * width);
            EXPECT_TRUE(std::equal(made.begin(), made.end(), from)) << array.name;
            ++compared;
        }
    }
    EXPECT_EQ(compared, merge->arrays().size());
    EXPECT_GE(compared, 1U);
}

// A build stops at the first progress that it reports after it is cancelled, and so does a search.
inline void expect_stops_when_cancelled(Method method)
{
    constexpr std::size_t dimensions = 24;
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(5000, dimensions, 8);
    RowBuffer buffer(dimensions);
    std::vector<Tid> tids(5000);
    for (std::uint32_t i = 0; i < 5000; ++i) tids[i] = {i, 1, 0};
    buffer.append(tids, rows);
    CancelToken cancel;
    const auto builder =
        find_method(method)->make_builder(Index::shape_of(method, Metric::l2, dimensions, ElementType::float32), {});
    BuildProgress progress{[&](const char*, std::uint64_t, std::uint64_t) { cancel.cancel(); }, &cancel};
    EXPECT_THROW(builder->run(buffer, progress, pool), Cancelled);

    const Index index(method, Metric::l2, dimensions, rows, {}, pool);
    SearchBatch batch;
    batch.queries = std::span(rows).first(dimensions * 100);
    batch.count = 100;
    batch.k = 10;
    batch.cancel = &cancel;
    std::vector<std::vector<RowResult>> results;
    EXPECT_THROW(index.searcher->search(batch, results, pool), Cancelled);
}

// Builds make the same bytes, and searches find the same, on one thread and on four.
inline void expect_same_on_any_threads(Method method, const std::vector<float>& rows, std::size_t dimensions,
                                       const ParameterList& options)
{
    ThreadPool one(1);
    ThreadPool four(4);
    const Index a(method, Metric::l2, dimensions, rows, options, one);
    const Index b(method, Metric::l2, dimensions, rows, options, four);
    for (const ArrayShape& array : a.builder->arrays())
        EXPECT_TRUE(a.contents(array) == b.contents(array)) << array.name;
    const std::vector<float> queries(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(dimensions * 30));
    const std::int64_t effort = a.builder->calibration().points[1].effort;
    const auto alone = a.search(queries, 10, one, {}, {}, effort);
    const auto together = a.search(queries, 10, four, {}, {}, effort);
    for (std::size_t q = 0; q < 30; ++q) EXPECT_EQ(ids(alone[q]), ids(together[q]));
}

}  // namespace pgwarp::test
