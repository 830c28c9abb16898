#include "ivfadc/builder.h"
#include "ivfadc/ivfadc.h"
#include "methods.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options)
{
    return make_ivfadc_builder(least_busy(contexts()), shape, options, make_searcher);
}

}  // namespace

const MethodDescriptor& method()
{
    static const MethodDescriptor descriptor{.method = Method::ivfadc,
                                             .name = "ivfadc",
                                             .make_builder = make_builder,
                                             .make_searcher = make_searcher,
                                             .exact_parts = cuda::find_method(Method::exact)};
    return descriptor;
}

}  // namespace pgwarp::cuda::ivfadc
