// The methods of the registry by number, name and capability, and the names of elements and metrics in SQL.
#include "methods/description.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace pgwarp
{

namespace
{

#define PGWARP_DESCRIPTION_ENTRY(name, number, on_device) &name##_description,
#define PGWARP_COUNT_DESCRIPTION(name, number, on_device) +1
std::size_t description_count = 0 PGWARP_METHODS(PGWARP_COUNT_DESCRIPTION);
const MethodDescription* descriptions[most_added_descriptions PGWARP_METHODS(PGWARP_COUNT_DESCRIPTION)] = {
    PGWARP_METHODS(PGWARP_DESCRIPTION_ENTRY)};
#undef PGWARP_COUNT_DESCRIPTION
#undef PGWARP_DESCRIPTION_ENTRY

constexpr ElementNames elements[] = {
    {ElementType::float32, "vector", "float32"},
    {ElementType::float16, "halfvec", "float16"},
    {ElementType::bit, "bit", "bit"},
    {ElementType::text, "text", "text"},
    {ElementType::set, "int2[]", "set"},
    {ElementType::set, "int4[]", "set"},
    {ElementType::set, "int8[]", "set"},
    {ElementType::set, "text[]", "set"},
    {ElementType::set, "varchar[]", "set"},
    {ElementType::set, "tsvector", "set"},
    {ElementType::bag, "tsvector", "bag"},
    {ElementType::attribute_set, "attributes", "attribute_set"},
    {ElementType::minhash_set, "int2[]", "minhash_set", "minhash"},
    {ElementType::minhash_set, "int4[]", "minhash_set", "minhash"},
    {ElementType::minhash_set, "int8[]", "minhash_set", "minhash"},
    {ElementType::minhash_set, "text[]", "minhash_set", "minhash"},
    {ElementType::minhash_set, "varchar[]", "minhash_set", "minhash"},
    {ElementType::minhash_set, "tsvector", "minhash_set", "minhash"},
    {ElementType::sparse, "sparsevec", "sparse"},
};

constexpr MetricNames metrics[] = {
    {Metric::l2, "l2", "l2", "<->", true},
    {Metric::inner_product, "ip", "inner_product", "<#>", false},
    {Metric::cosine, "cosine", "cosine", "<=>", false},
    {Metric::l1, "l1", "l1", "<+>", false},
    {Metric::hamming, "hamming", "hamming", "<~>", false},
    {Metric::jaccard, "jaccard", "jaccard", "<%>", false},
    {Metric::edit, "edit", "edit", "<~~>", true},
    {Metric::edit_transpositions, "transpositions", "edit_transpositions", "<~^~>", false},
    {Metric::edit_substring, "substring", "edit_substring", ">>~~<<", false},
    {Metric::gram_jaccard, "gram", "gram_jaccard", "<%%>", false},
    {Metric::overlap, "overlap", "overlap", "<&>", true},
    {Metric::set_jaccard, "jaccard", "set_jaccard", "<%>", false},
    {Metric::bm25, "bm25", "bm25", "<&>", false},
};

}  // namespace

std::span<const MethodDescription* const> method_descriptions()
{
    return {descriptions, description_count};
}

void add_description(const MethodDescription& description)
{
    if (description_count < std::size(descriptions)) descriptions[description_count++] = &description;
}

void remove_description(const MethodDescription& description)
{
    const auto end = descriptions + description_count;
    description_count = static_cast<std::size_t>(std::remove(descriptions, end, &description) - descriptions);
}

const MethodDescription* find_description(Method method)
{
    for (const MethodDescription* description : method_descriptions()) {
        if (description->method == method) return description;
    }
    return nullptr;
}

const MethodDescription* find_description(const char* name)
{
    for (const MethodDescription* description : method_descriptions()) {
        if (std::strcmp(description->name, name) == 0) return description;
    }
    return nullptr;
}

const MethodDescription* complete_description(ElementType element)
{
    for (const MethodDescription* description : method_descriptions()) {
        if (description->complete.has(element) && takes_elements(*description, element)) return description;
    }
    return nullptr;
}

bool takes_elements(const MethodDescription& method, ElementType element)
{
    return std::any_of(method.comparisons.begin(), method.comparisons.end(),
                       [element](const Comparison& comparison) { return comparison.element == element; });
}

bool is_complete(const MethodDescription& method)
{
    return std::all_of(method.comparisons.begin(), method.comparisons.end(),
                       [&method](const Comparison& comparison) { return method.complete.has(comparison.element); });
}

const char* array_name(const MethodDescription& method, ArrayRole role)
{
    for (const ArrayDescription& array : method.arrays) {
        if (array.role == role) return array.name;
    }
    return nullptr;
}

bool is_row_array(const MethodDescription& method, const char* name)
{
    for (const char* own : {array_tid_block, array_tid_offset, array_attributes}) {
        if (std::strcmp(name, own) == 0) return true;
    }
    return std::any_of(method.arrays.begin(), method.arrays.end(), [name](const ArrayDescription& array) {
        return array.of_rows && std::strcmp(array.name, name) == 0;
    });
}

const char* effort_parameter(const MethodDescription& method)
{
    for (const SettingDescription& setting : method.settings) {
        if (setting.is_effort) return setting.parameter;
    }
    return nullptr;
}

bool keeps_halves(const IndexShape& shape)
{
    if (shape.element != ElementType::float16) return false;
    const MethodDescription* description = find_description(shape.method);
    return description != nullptr && description->stores_halves;
}

ArrayType vector_array_type(const IndexShape& shape)
{
    if (shape.element == ElementType::bit) return ArrayType::u32;
    return keeps_halves(shape) ? ArrayType::f16 : ArrayType::f32;
}

OptionFault check_form_of_bits(const ParameterList& options, const IndexShape& column)
{
    OptionFault fault;
    if (column.dimensions == 0 || column.element != ElementType::bit || options.get("vectors", 0) == 0) return fault;
    std::snprintf(fault.message, sizeof(fault.message), "vectors = full is the only choice for bits");
    fault.hint = "They are kept as they are, a bit a dimension.";
    return fault;
}

std::span<const ElementNames> element_names()
{
    return elements;
}

std::span<const MetricNames> metric_names()
{
    return metrics;
}

}  // namespace pgwarp
