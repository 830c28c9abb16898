// Documents, values of tsvector, as bags of terms (protocol/bag_rows.h). The frequency of a lexeme is the number of its
// positions, whatever their weights; a lexeme without positions has the frequency 1.
#pragma once

#include "postgres/postgres_headers.h"

#include "numeric/metric.h"
#include "protocol/rows.h"

namespace pgwarp
{

inline constexpr uint32 max_bag_terms = max_list_words / bag_words;

// Returns the term of a lexeme, a hash of its bytes.
uint64 term_of_lexeme(const char* bytes, Size length);

// Returns a document as a palloc'ed row. Raises 54000 for more than max_bag_terms lexemes.
RowView read_bag_row(Datum document);
// Returns the distance of a document to a query, a row alone in its view, as the operator <&> does.
double bag_row_distance(Metric metric, const RowView& query, Datum document);

}  // namespace pgwarp
