#include "exact/exact.h"
#include "methods/exact/exact.h"

namespace pgwarp::cuda::exact
{

namespace
{

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList&,
                                        std::span<const ArrayShape> arrays)
{
    return make_exact_searcher(roomiest(contexts()), shape, arrays);
}

}  // namespace

MethodDescriptor method()
{
    return {
        .method = Method::exact, .name = "exact", .make_builder = make_exact_builder, .make_searcher = make_searcher};
}

}  // namespace pgwarp::cuda::exact
