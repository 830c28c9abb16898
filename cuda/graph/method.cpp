// The registration of graph in the module's registry.
#include "graph/graph.h"
#include "methods.h"

namespace pgwarp::cuda
{

namespace
{

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options)
{
    return graph::make_builder(least_busy(contexts()), shape, options);
}

}  // namespace

const MethodFactory& graph_method()
{
    static const MethodFactory factory{.method = Method::graph,
                                       .make_builder = make_builder,
                                       .make_searcher = graph::make_searcher,
                                       .exact_parts = complete_method()};
    return factory;
}

}  // namespace pgwarp::cuda
