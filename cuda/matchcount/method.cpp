// The registration of matchcount in the module's registry: the CPU's method with searchers of texts, sets, sparse
// vectors and vectors on the device with the most free memory.
#include "matchcount/part_search.h"
#include "matchcount/sparse_search.h"
#include "matchcount/text_search.h"
#include "matchcount/vector_search.h"
#include "methods.h"

namespace pgwarp::cuda
{

namespace
{

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    Context& context = roomiest(contexts());
    if (shape.element == ElementType::text) return make_text_searcher(context, shape, arrays);
    if (shape.element == ElementType::sparse) return make_sparse_searcher(context, shape, arrays);
    return is_list(shape.element) ? make_part_searcher(context, shape, arrays)
                                  : make_vector_searcher(context, shape, options, arrays);
}

bool serves(const IndexShape& shape)
{
    const auto metric = static_cast<Metric>(shape.metric);
    if (shape.element == ElementType::sparse) return metric != Metric::l1;
    return !is_list(shape.element) || metric == Metric::edit || metric == Metric::overlap;
}

}  // namespace

const MethodFactory& matchcount_method()
{
    static const MethodFactory factory = [] {
        MethodFactory own = *pgwarp::find_method(Method::matchcount);
        own.make_searcher = make_searcher;
        own.serves = serves;
        own.exact_parts = complete_method();
        return own;
    }();
    return factory;
}

}  // namespace pgwarp::cuda
