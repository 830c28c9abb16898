// The type bm25_query: terms with weights, and the correction by length of documents (protocol/bag_rows.h). It is
// stored like attributes: the words of its engine form, then its text form,
//   [k1,b,average] lexeme:weight ...
// where `average` is the average length of a document. A document's score is the sum, over the lexemes that it has, of
//   weight * f / (f + k1 (1 - b + b length / average)), with f the number of the lexeme's positions there.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/types/attributes.h"
#include "protocol/bag_rows.h"

namespace pgwarp
{

inline constexpr uint32 max_query_terms =
    static_cast<uint32>((max_list_words - bag_query_words) / bag_query_term_words);

struct Bm25Form {
    double k1;       // 0 to 1000
    double b;        // 0 to 1
    double average;  // 1 to 1e9
};

struct WeightedLexeme {
    const char* bytes;
    int length;
    double weight;
    uint64 term;
};

// Raise 22003 for numbers out of range.
void check_form(const Bm25Form& form);
void check_weight(double weight);
// Raises 54000 for more than max_query_terms.
void check_lexeme_count_of_query(Size count);

// Makes a query; sorts the lexemes. Those of one term have the sum of their weights. All is checked already.
PartsValue* make_bm25_query(const Bm25Form& form, WeightedLexeme* lexemes, uint32 count);
// Reads the text form. Raises 22P02 for text of another form, and the errors of the checks.
PartsValue* parse_bm25_query(const char* literal);

}  // namespace pgwarp
