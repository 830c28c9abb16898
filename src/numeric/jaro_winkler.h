// The similarity of Jaro and Winkler, for short names above all: Winkler, "String comparator metrics and enhanced
// decision rules in the Fellegi-Sunter model of record linkage" (1990). It is symmetric, but 1 less it is no metric.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/text_rows.h"

namespace pgwarp
{

std::size_t jaro_winkler_memory_words(const TextView& a, const TextView& b);

// Returns the similarity, 0 to 1: 1 for equal texts, empty ones too, 0 for texts that share no character nearby. A
// common beginning of up to 4 characters brings similarities above 0.7 nearer to 1, by a tenth of the rest each.
// `memory`: jaro_winkler_memory_words() words of scratch. Takes n log n steps.
double jaro_winkler(const TextView& a, const TextView& b, std::uint64_t* memory);

}  // namespace pgwarp
