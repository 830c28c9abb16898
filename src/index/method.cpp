// The methods that this build knows.
#include "index/clustering/clustering.h"
#include "index/exact/exact.h"
#include "index/graph/extender.h"
#include "index/graph/graph.h"
#include "index/index.h"
#include "index/ivfadc/calibrator.h"
#include "index/ivfadc/extender.h"
#include "index/ivfadc/ivfadc.h"

namespace pgwarp
{

static const MethodDescriptor methods[] = {
    {Method::exact, "exact", make_exact_builder, make_exact_searcher, make_exact_builder, exact_part_options, nullptr},
    {Method::ivfadc, "ivfadc", make_ivfadc_builder, make_ivfadc_searcher, make_ivfadc_extender, ivfadc_part_options,
     array_centroids, make_ivfadc_calibrator},
    {Method::graph, "graph", make_graph_builder, make_graph_searcher, make_graph_extender, graph_part_options, nullptr},
    {clustering_method, "clustering", make_clustering_builder, make_clustering_searcher, nullptr, nullptr, nullptr},
};

const MethodDescriptor* find_method(Method method)
{
    for (const MethodDescriptor& descriptor : methods) {
        if (descriptor.method == method) return &descriptor;
    }
    return nullptr;
}

}  // namespace pgwarp
