// The methods that this build knows.
#include "methods/clustering/clustering.h"
#include "methods/exact/exact.h"
#include "methods/graph/extender.h"
#include "methods/graph/graph.h"
#include "methods/ivfadc/calibrator.h"
#include "methods/ivfadc/extender.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/method.h"

namespace pgwarp
{

static const MethodDescriptor methods[] = {
    {Method::exact, "exact", make_exact_builder, make_exact_searcher, make_exact_builder, exact_part_options, nullptr},
    {Method::ivfadc, "ivfadc", make_ivfadc_builder, make_ivfadc_searcher, make_ivfadc_extender, ivfadc_part_options,
     array_centroids, make_ivfadc_calibrator},
    {Method::graph, "graph", make_graph_builder, make_graph_searcher, make_graph_extender, graph_part_options, nullptr},
    {clustering_method, "clustering", make_clustering_builder, make_clustering_searcher, nullptr, nullptr, nullptr},
};

static std::vector<const MethodDescriptor*>& registered()
{
    static std::vector<const MethodDescriptor*> others;
    return others;
}

RegisteredMethod::RegisteredMethod(const MethodDescriptor& method) : method_(method)
{
    registered().push_back(&method);
}

RegisteredMethod::~RegisteredMethod()
{
    std::erase(registered(), &method_);
}

const MethodDescriptor* find_method(Method method)
{
    for (const MethodDescriptor& descriptor : methods) {
        if (descriptor.method == method) return &descriptor;
    }
    for (const MethodDescriptor* descriptor : registered()) {
        if (descriptor->method == method) return descriptor;
    }
    return nullptr;
}

}  // namespace pgwarp
