// A graph index built by the CPU, a searcher on the device, and comparison of answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "agreement.h"
#include "graph/graph.h"
#include "methods_fixture.h"
#include "shared_context.h"

namespace pgwarp::test
{

inline std::unique_ptr<Searcher> load_graph(const Index& index, cuda::Context& context, ThreadPool& pool,
                                            std::size_t piece = 100003)
{
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    auto searcher = cuda::graph::make_searcher(index.shape, index.builder->effective_options(), arrays, context);
    index.write_to(*searcher, piece);
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
