#include "graph/graph.h"
#include "methods.h"

namespace pgwarp::cuda::graph
{

namespace
{

std::unique_ptr<Builder> make_builder_somewhere(const IndexShape& shape, const ParameterList& options)
{
    return make_builder(least_busy(contexts()), shape, options);
}

}  // namespace

const MethodDescriptor& method()
{
    static const MethodDescriptor descriptor{.method = Method::graph,
                                             .name = "graph",
                                             .make_builder = make_builder_somewhere,
                                             .make_searcher = make_searcher,
                                             .exact_parts = cuda::find_method(Method::exact)};
    return descriptor;
}

}  // namespace pgwarp::cuda::graph
