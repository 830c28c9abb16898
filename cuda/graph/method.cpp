#include "graph/graph.h"

namespace pgwarp::cuda::graph
{

namespace
{

std::unique_ptr<Builder> make_builder_somewhere(const IndexShape& shape, const ParameterList& options)
{
    return make_builder(least_busy(contexts()), shape, options);
}

}  // namespace

MethodDescriptor method()
{
    return {.method = Method::graph,
            .name = "graph",
            .make_builder = make_builder_somewhere,
            .make_searcher = make_searcher};
}

}  // namespace pgwarp::cuda::graph
