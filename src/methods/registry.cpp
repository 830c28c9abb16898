// The methods that this build knows: those of the registry, and k-means, which makes no index.
#include "methods/clustering/clustering.h"
#include "methods/method.h"

namespace pgwarp
{

static std::vector<const MethodFactory*>& registered()
{
    static std::vector<const MethodFactory*> others;
    return others;
}

RegisteredMethod::RegisteredMethod(const MethodFactory& method, const MethodDescription& description)
    : method_(method), description_(description)
{
    registered().push_back(&method);
    add_description(description);
}

RegisteredMethod::~RegisteredMethod()
{
    std::erase(registered(), &method_);
    remove_description(description_);
}

const MethodFactory* find_method(Method method)
{
    if (method == clustering_method) return &clustering_factory();
#define PGWARP_FIND_METHOD(name, number, on_device) \
    if (method == Method::name) return &name##_method();
    PGWARP_METHODS(PGWARP_FIND_METHOD)
#undef PGWARP_FIND_METHOD
    for (const MethodFactory* factory : registered()) {
        if (factory->method == method) return factory;
    }
    return nullptr;
}

}  // namespace pgwarp
