// The factory of matchcount on the CPU.
#include "methods/matchcount/matchcount.h"

#include "methods/matchcount/hash_count.h"

namespace pgwarp
{

std::size_t matchcount::function_count(const ParameterList& options)
{
    const std::int64_t given = options.get(option_hashes, 0);
    if (given != 0) return static_cast<std::size_t>(given);
    const std::int64_t epsilon = options.get(option_epsilon, 0);
    const std::int64_t delta = options.get(option_delta, 0);
    return hash_count(epsilon != 0 ? static_cast<double>(epsilon) * 1e-6 : usual_epsilon,
                      delta != 0 ? static_cast<double>(delta) * 1e-6 : usual_delta);
}

namespace
{

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options)
{
    if (shape.element == ElementType::text) return matchcount::make_text_builder(shape, options);
    if (shape.element == ElementType::minhash_set) return matchcount::make_set_builder(shape, options);
    return is_list(shape.element) ? matchcount::make_part_builder(shape, options)
                                  : matchcount::make_vector_builder(shape, options);
}

std::unique_ptr<Builder> make_merge_builder(const IndexShape& shape, const ParameterList& options)
{
    if (shape.element == ElementType::minhash_set) return matchcount::make_set_merge_builder(shape, options);
    return is_list(shape.element) ? make_builder(shape, options)
                                  : matchcount::make_vector_merge_builder(shape, options);
}

std::unique_ptr<Builder> make_calibrator(const IndexShape& shape, const ParameterList& options)
{
    if (shape.element == ElementType::minhash_set) return matchcount::make_set_calibrator(shape, options);
    if (is_list(shape.element)) throw BadRequest("searches of lists miss nothing that could be measured");
    return matchcount::make_vector_calibrator(shape, options);
}

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    if (shape.element == ElementType::text) return matchcount::make_text_searcher(shape, options, arrays);
    if (shape.element == ElementType::bag) return matchcount::make_bag_searcher(shape, arrays);
    if (shape.element == ElementType::minhash_set) return matchcount::make_set_searcher(shape, options, arrays);
    if (shape.element == ElementType::sparse) return matchcount::make_sparse_searcher(shape, arrays);
    return is_list(shape.element) ? matchcount::make_part_searcher(shape, arrays)
                                  : matchcount::make_vector_searcher(shape, options, arrays);
}

constexpr ElementSet lists = {ElementType::text,        ElementType::set, ElementType::attribute_set,
                              ElementType::minhash_set, ElementType::bag, ElementType::sparse};

// Delta rows are indexed like the rows of the index.
ParameterList part_options(const IndexShape&, const ParameterList& options, const ArrayShape*)
{
    return options;
}

}  // namespace

const MethodFactory& matchcount_method()
{
    // Exact parts of vectors are as fast as signatures, and miss nothing.
    static const MethodFactory factory{.method = Method::matchcount,
                                       .make_builder = make_builder,
                                       .make_searcher = make_searcher,
                                       .make_merge_builder = make_merge_builder,
                                       .part_options = part_options,
                                       .make_calibrator = make_calibrator,
                                       .part_elements = lists};
    return factory;
}

}  // namespace pgwarp
