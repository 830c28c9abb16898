// The estimate of an index of matchcount: signatures of vectors and sets, inverted lists of other rows.
#include "methods/matchcount/estimate.h"

#include "numeric/metric.h"
#include "protocol/rows.h"

namespace pgwarp
{

namespace
{

constexpr double word_bytes = 4;
constexpr double offset_bytes = 8;  // of a list
constexpr double functions = 226;   // by the usual epsilon and delta

constexpr double core_seconds_of_row = 1.5e-5;
constexpr double core_seconds_of_value = 7e-8;
constexpr double core_seconds_of_word = 4e-7;
constexpr double gpu_seconds = 0.1;
constexpr double gpu_seconds_of_row = 2e-7;

BuildEstimate estimate_vectors(const EstimateInput& input)
{
    const double dimensions = input.shape.dimensions;
    // Under cosine a hash value is a bit.
    const bool of_bits = input.shape.metric == static_cast<std::uint8_t>(Metric::cosine);
    const double row = bytes_of_floats(input.shape) + (of_bits ? functions / 8 : functions);
    const double all = input.rows * row + functions * bytes_of_floats(input.shape);
    return {.stored_bytes = all,
            .host_bytes = all,
            .gpu_bytes = all,
            .core_seconds = input.rows * (core_seconds_of_row + dimensions * core_seconds_of_value),
            .gpu_seconds = gpu_seconds + input.rows * gpu_seconds_of_row};
}

// Of a word as stored, with its weight where words have one.
double bytes_of_word(ElementType element)
{
    return row_layout(element) == RowLayout::weighted_lists ? 2 * word_bytes : word_bytes;
}

// As many functions as epsilon and delta ask for.
double signature_of_list(ElementType element)
{
    return element == ElementType::minhash_set ? functions : 0;
}

// Of a row that is a list, in the engine's memory, without what distinct parts take: the parts' places in inverted
// lists, or the row itself with its grams or its signature.
double host_bytes_of_list(ElementType element, double words)
{
    constexpr double row_bytes = 20;
    if (element == ElementType::text) return row_bytes + words * (word_bytes + 4 * word_bytes);  // a gram a character
    if (element == ElementType::set) return words / set_words * word_bytes + row_bytes;
    if (element == ElementType::attribute_set) return words / attribute_words * word_bytes + row_bytes;
    if (element == ElementType::bag) return words / bag_words * (word_bytes + 1) + row_bytes;
    // A posting and the number of its value beside the row.
    if (element == ElementType::sparse) return words * (bytes_of_word(element) + word_bytes + 2) + row_bytes;
    return words * bytes_of_word(element) + signature_of_list(element) + row_bytes;
}

}  // namespace

BuildEstimate estimate_matchcount_build(const EstimateInput& input)
{
    if (!is_list(input.shape.element)) return estimate_vectors(input);
    const ElementType element = input.shape.element;
    const double stored = offset_bytes + input.words * bytes_of_word(element) + signature_of_list(element);
    return {.stored_bytes = input.rows * stored,
            .host_bytes = input.rows * host_bytes_of_list(element, input.words),
            .gpu_bytes = input.rows * stored,
            .core_seconds = input.rows * input.words * core_seconds_of_word,
            .gpu_seconds = gpu_seconds + input.rows * gpu_seconds_of_row};
}

}  // namespace pgwarp
