// A graph index built by the CPU, a searcher on the device, and comparison of answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "methods_fixture.h"
#include "shared_context.h"

namespace pgwarp::test
{

using Results = std::vector<std::vector<RowResult>>;

inline std::unique_ptr<Searcher> load_graph(const Index& index, cuda::Context& context, ThreadPool& pool,
                                            std::size_t piece = 100003)
{
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    auto searcher = cuda::graph::make_searcher(index.shape, index.builder->effective_options(), arrays, context);
    for (const ArrayShape& array : arrays) {
        const std::vector<std::byte> bytes = index.contents(array);
        for (std::size_t offset = 0; offset < bytes.size(); offset += piece) {
            const std::size_t length = std::min(piece, bytes.size() - offset);
            searcher->write(array.name, offset, std::span(bytes).subspan(offset, length));
        }
    }
    searcher->finish_load(pool);
    return searcher;
}

inline Results ask(const Searcher& searcher, const std::vector<float>& queries, std::size_t dimensions, std::uint32_t k,
                   const ParameterList& settings, ThreadPool& pool, RowBitmap dead = {})
{
    SearchBatch batch;
    batch.queries = queries;
    batch.count = queries.size() / dimensions;
    batch.k = k;
    batch.settings = settings;
    batch.dead = dead;
    Results results;
    searcher.search(batch, results, pool);
    return results;
}

struct Agreement {
    double share = 0;         // share of the expected rows that were found
    std::size_t unequal = 0;  // rows in both answers with different values
    bool ordered = true;
};

inline Agreement compare(const Results& expected, const Results& found)
{
    Agreement agreement;
    double shared = 0;
    double all = 0;
    for (std::size_t q = 0; q < expected.size(); ++q) {
        std::map<std::uint32_t, double> values;
        for (const RowResult& result : expected[q]) values[result.row] = result.distance;
        std::set<std::uint32_t> seen;
        for (std::size_t i = 0; i < found[q].size(); ++i) {
            const RowResult& result = found[q][i];
            if (!seen.insert(result.row).second) agreement.ordered = false;
            if (i > 0) {
                const RowResult& before = found[q][i - 1];
                if (std::pair(result.distance, result.row) < std::pair(before.distance, before.row)) {
                    agreement.ordered = false;
                }
            }
            const auto known = values.find(result.row);
            if (known == values.end()) continue;
            shared += 1;
            if (known->second != result.distance) ++agreement.unequal;
        }
        all += static_cast<double>(expected[q].size());
    }
    agreement.share = all > 0 ? shared / all : 1;
    return agreement;
}

inline void expect_same(const Results& expected, const Results& found, const std::string& what)
{
    ASSERT_EQ(expected.size(), found.size()) << what;
    std::size_t other = 0;
    for (std::size_t q = 0; q < expected.size(); ++q) {
        bool same = expected[q].size() == found[q].size();
        for (std::size_t i = 0; same && i < found[q].size(); ++i) {
            same = expected[q][i].row == found[q][i].row && expected[q][i].distance == found[q][i].distance;
        }
        other += same ? 0 : 1;
    }
    EXPECT_EQ(other, 0U) << what;
}

}  // namespace pgwarp::test
