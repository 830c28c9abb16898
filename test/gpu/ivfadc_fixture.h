// An ivfadc index with a searcher on each device.
#pragma once

#include "agreement.h"
#include "ivfadc/ivfadc.h"
#include "methods_fixture.h"
#include "shared_context.h"

namespace pgwarp::test
{

struct Both : Index {
    std::unique_ptr<Searcher> device;

    Both(Metric metric, std::size_t dimensions, const std::vector<float>& vectors, const ParameterList& options,
         ThreadPool& pool, std::size_t piece = 4096)
        : Index(Method::ivfadc, metric, dimensions, vectors, options, pool)
    {
        device = cuda::ivfadc::make_searcher(shape, builder->effective_options(), builder->arrays(), shared_context());
        write_to(*device, piece);
        device->finish_load(pool);
    }

    std::vector<std::vector<RowResult>> ask(const Searcher& from, const std::vector<float>& queries, std::uint32_t k,
                                            std::int64_t probes, ThreadPool& pool, RowBitmap dead = {}) const
    {
        SearchBatch batch;
        batch.queries = queries;
        batch.count = queries.size() / shape.dimensions;
        batch.k = k;
        batch.effort = probes;
        batch.dead = dead;
        std::vector<std::vector<RowResult>> results;
        from.search(batch, results, pool);
        return results;
    }
};

}  // namespace pgwarp::test
