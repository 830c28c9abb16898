// The registration of pqtree in the module's registry.
#include "methods.h"
#include "pqtree/builder.h"
#include "pqtree/pqtree.h"

namespace pgwarp::cuda
{

namespace
{

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options)
{
    return pqtree::make_builder(least_busy(contexts()), shape, options);
}

}  // namespace

const MethodFactory& pqtree_method()
{
    static const MethodFactory factory{.method = Method::pqtree,
                                       .make_builder = make_builder,
                                       .make_searcher = pqtree::make_searcher,
                                       .exact_parts = complete_method()};
    return factory;
}

}  // namespace pgwarp::cuda
