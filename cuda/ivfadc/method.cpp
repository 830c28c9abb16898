#include "ivfadc/builder.h"
#include "ivfadc/ivfadc.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options)
{
    return make_ivfadc_builder(least_busy(contexts()), shape, options, make_searcher);
}

}  // namespace

MethodDescriptor method()
{
    return {.method = Method::ivfadc, .name = "ivfadc", .make_builder = make_builder, .make_searcher = make_searcher};
}

}  // namespace pgwarp::cuda::ivfadc
