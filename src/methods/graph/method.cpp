// The factory of graph on the CPU.
#include "methods/graph/graph.h"
#include "methods/graph/merge_build.h"
#include "protocol/merge_build.h"

namespace pgwarp
{

namespace
{

// Delta rows get a graph of their own: of halves, or of bits as they are, which have no other form.
ParameterList part_options(const IndexShape& shape, const ParameterList& options, const ArrayShape*)
{
    const GraphVectors vectors = shape.element == ElementType::bit ? GraphVectors::full : GraphVectors::half;
    ParameterList part;
    part.set("degree", options.get("degree", 0));
    part.set("build_degree", options.get("build_degree", 0));
    part.set("vectors", static_cast<std::int64_t>(vectors));
    part.set(option_part, 1);
    return part;
}

}  // namespace

const MethodFactory& graph_method()
{
    static const MethodFactory factory{.method = Method::graph,
                                       .make_builder = make_graph_builder,
                                       .make_searcher = make_graph_searcher,
                                       .make_merge_builder = make_graph_merge_builder,
                                       .part_options = part_options};
    return factory;
}

}  // namespace pgwarp
