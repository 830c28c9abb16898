// The methods that this build knows.
#include "index/clustering/clustering.h"
#include "index/exact/exact.h"
#include "index/index.h"
#include "index/ivfadc/ivfadc.h"

namespace pgwarp
{

static const MethodDescriptor methods[] = {
    {Method::exact, "exact", make_exact_builder, make_exact_searcher},
    {Method::ivfadc, "ivfadc", make_ivfadc_builder, make_ivfadc_searcher},
    {clustering_method, "clustering", make_clustering_builder, make_clustering_searcher},
};

const MethodDescriptor* find_method(Method method)
{
    for (const MethodDescriptor& descriptor : methods) {
        if (descriptor.method == method) return &descriptor;
    }
    return nullptr;
}

}  // namespace pgwarp
