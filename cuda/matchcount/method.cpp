// The registration of matchcount in the module's registry: the CPU's builder, which stores the texts, and a searcher on
// the device with the most free memory.
#include "matchcount/text_search.h"
#include "methods.h"
#include "methods/matchcount/matchcount.h"

namespace pgwarp::cuda
{

namespace
{

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    return make_text_searcher(roomiest(contexts()), shape, options, arrays);
}

}  // namespace

const MethodFactory& matchcount_method()
{
    static const MethodFactory factory{.method = Method::matchcount,
                                       .make_builder = matchcount::make_builder,
                                       .make_searcher = make_searcher,
                                       .takes_lists = true};
    return factory;
}

}  // namespace pgwarp::cuda
