#include "methods.h"

#include "cluster/clustering.h"

namespace pgwarp::cuda
{

const MethodFactory* find_method(Method method)
{
    if (method == clustering_method) return clustering_factory();
#define PGWARP_FIND_METHOD(name, number, on_device)          \
    if constexpr (on_device) {                               \
        if (method == Method::name) return &name##_method(); \
    }
    PGWARP_METHODS(PGWARP_FIND_METHOD)
#undef PGWARP_FIND_METHOD
    return nullptr;
}

const MethodFactory* complete_method()
{
    return cuda::find_method(complete_description(ElementType::float32)->method);
}

}  // namespace pgwarp::cuda
