// The factory of exact on the CPU.
#include "methods/exact/exact.h"

namespace pgwarp
{

namespace
{

// Delta rows are indexed like the rows of the index.
ParameterList part_options(const IndexShape&, const ParameterList& options, const ArrayShape*)
{
    return options;
}

}  // namespace

const MethodFactory& exact_method()
{
    static const MethodFactory factory{.method = Method::exact,
                                       .make_builder = make_exact_builder,
                                       .make_searcher = make_exact_searcher,
                                       .make_merge_builder = make_exact_builder,
                                       .part_options = part_options};
    return factory;
}

}  // namespace pgwarp
