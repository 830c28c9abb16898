// The registration of matchcount in the module's registry: the CPU's method with a searcher of texts on the device with
// the most free memory.
#include "matchcount/text_search.h"
#include "methods.h"

namespace pgwarp::cuda
{

namespace
{

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList&,
                                        std::span<const ArrayShape> arrays)
{
    return make_text_searcher(roomiest(contexts()), shape, arrays);
}

bool serves(const IndexShape& shape)
{
    return shape.element == ElementType::text && static_cast<Metric>(shape.metric) == Metric::edit;
}

}  // namespace

const MethodFactory& matchcount_method()
{
    static const MethodFactory factory = [] {
        MethodFactory own = *pgwarp::find_method(Method::matchcount);
        own.make_searcher = make_searcher;
        own.serves = serves;
        return own;
    }();
    return factory;
}

}  // namespace pgwarp::cuda
