// The index method matchcount on the CPU: similarity search on rows that break into parts (Zhou et al., "A Generic
// Inverted Index Framework for Similarity Search on the GPU"). Text is searched by edit distance, and every answer is
// exact: candidates by shared grams, verified, and where their counts prove nothing, a comparison of all rows whose
// lengths allow it.
#pragma once

#include "methods/matchcount/grams.h"
#include "methods/method.h"

namespace pgwarp::matchcount
{

// The option for the number of characters of a gram.
inline constexpr char option_gram[] = "gram";

// Returns the form of the grams of an index with these options. Throws BadRequest for one out of range.
GramForm gram_form(const ParameterList& options);

std::unique_ptr<Builder> make_builder(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays);

}  // namespace pgwarp::matchcount
