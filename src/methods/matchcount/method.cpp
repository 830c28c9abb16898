// The factory of matchcount on the CPU.
#include "methods/matchcount/matchcount.h"

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

const MethodFactory& matchcount_method()
{
    static const MethodFactory factory{.method = Method::matchcount,
                                       .make_builder = matchcount::make_builder,
                                       .make_searcher = matchcount::make_searcher,
                                       .make_merge_builder = matchcount::make_builder,
                                       .part_options = part_options,
                                       .takes_lists = true};
    return factory;
}

}  // namespace pgwarp
