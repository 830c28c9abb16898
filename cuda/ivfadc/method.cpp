// The registration of ivfadc in the module's registry.
#include "ivfadc/builder.h"
#include "ivfadc/ivfadc.h"
#include "methods.h"

namespace pgwarp::cuda
{

namespace
{

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options)
{
    return make_ivfadc_builder(least_busy(contexts()), shape, options, ivfadc::make_searcher);
}

}  // namespace

const MethodFactory& ivfadc_method()
{
    static const MethodFactory factory{.method = Method::ivfadc,
                                       .make_builder = make_builder,
                                       .make_searcher = ivfadc::make_searcher,
                                       .exact_parts = complete_method()};
    return factory;
}

}  // namespace pgwarp::cuda
