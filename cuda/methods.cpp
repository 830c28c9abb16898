#include "methods.h"

#include <vector>

#include "cluster/clustering.h"
#include "exact/exact.h"
#include "graph/graph.h"
#include "ivfadc/ivfadc.h"

namespace pgwarp::cuda
{

namespace
{

// Fresh rows beside an index are searched by the exact method, which comes first.
std::vector<MethodDescriptor> served_methods()
{
    std::vector<MethodDescriptor> served{exact::method(), ivfadc::method(), graph::method()};
    for (MethodDescriptor& one : served) one.exact_parts = served.data();
    return served;
}

}  // namespace

const MethodDescriptor* find_method(Method method)
{
    static const std::vector<MethodDescriptor> served = served_methods();
    static const MethodDescriptor clustering = clustering::method();
    if (method == clustering.method) return &clustering;
    for (const MethodDescriptor& one : served) {
        if (one.method == method) return &one;
    }
    return nullptr;
}

}  // namespace pgwarp::cuda
