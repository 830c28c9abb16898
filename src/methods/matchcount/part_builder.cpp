// The build of an index of sets, attributes, bags or sparse vectors. It has no options.
#include "methods/list_builder.h"
#include "methods/matchcount/matchcount.h"
#include "methods/options.h"

namespace pgwarp::matchcount
{

std::unique_ptr<Builder> make_part_builder(const IndexShape& shape, const ParameterList& options)
{
    require_options(matchcount_description, options, shape);
    return make_list_builder({});
}

}  // namespace pgwarp::matchcount
