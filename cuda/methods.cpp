#include "methods.h"

#include "cluster/clustering.h"
#include "exact/exact.h"
#include "graph/graph.h"
#include "ivfadc/ivfadc.h"

namespace pgwarp::cuda
{

const MethodDescriptor* find_method(Method method)
{
    if (method == clustering_method) return clustering_descriptor();
    switch (method) {
        case Method::exact:
            return exact_method();
        case Method::ivfadc:
            return &ivfadc::method();
        case Method::graph:
            return &graph::method();
        default:
            return nullptr;
    }
}

}  // namespace pgwarp::cuda
