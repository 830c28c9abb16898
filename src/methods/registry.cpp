// The methods that this build knows.
#include "methods/clustering/clustering.h"
#include "methods/exact/exact.h"
#include "methods/graph/graph.h"
#include "methods/graph/merge_build.h"
#include "methods/ivfadc/calibrator.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/ivfadc/merge_build.h"
#include "methods/method.h"

namespace pgwarp
{

static const MethodDescriptor methods[] = {
    {Method::exact, "exact", make_exact_builder, make_exact_searcher, make_exact_builder, exact_part_options, nullptr},
    {Method::ivfadc, "ivfadc", make_ivfadc_builder, make_ivfadc_searcher, make_ivfadc_merge_builder,
     ivfadc_part_options, array_centroids, make_ivfadc_calibrator},
    {Method::graph, "graph", make_graph_builder, make_graph_searcher, make_graph_merge_builder, graph_part_options,
     nullptr},
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
