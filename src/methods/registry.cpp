// The methods that this build knows: those of the registry, and k-means, which makes no index.
#include "methods/clustering/clustering.h"
#include "methods/method.h"

namespace pgwarp
{

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
    if (method == clustering_method) return &clustering_descriptor();
#define PGWARP_FIND_METHOD(name, number, on_device) \
    if (method == Method::name) return &name##_method();
    PGWARP_METHODS(PGWARP_FIND_METHOD)
#undef PGWARP_FIND_METHOD
    for (const MethodDescriptor* descriptor : registered()) {
        if (descriptor->method == method) return descriptor;
    }
    return nullptr;
}

}  // namespace pgwarp
