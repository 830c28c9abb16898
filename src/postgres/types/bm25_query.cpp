// Makes queries of the type bm25_query, and reads their text.
#include "postgres/types/bm25_query.h"

#include <algorithm>

#include "postgres/types/attribute_text.h"
#include "postgres/types/bag_value.h"

extern "C" {
#include "miscadmin.h"
}

namespace pgwarp
{

namespace
{

void check_range(const char* name, double value, double least, double most)
{
    if (value >= least && value <= most) return;
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%s of a bm25_query must be between %g and %g", name, least, most)));
}

// The order of the words; equal lexemes are neighbours.
bool lexeme_comes_before(const WeightedLexeme& a, const WeightedLexeme& b)
{
    if (a.term != b.term) return a.term < b.term;
    if (a.length != b.length) return a.length < b.length;
    return memcmp(a.bytes, b.bytes, static_cast<Size>(a.length)) < 0;
}

bool same_lexeme(const WeightedLexeme& a, const WeightedLexeme& b)
{
    return a.length == b.length && memcmp(a.bytes, b.bytes, static_cast<Size>(a.length)) == 0;
}

void write_value(double value, uint32* out)
{
    write_part_number(std::bit_cast<uint64>(value + 0.0), out);  // one zero
}

// Writes the words of sorted lexemes. Returns their number.
uint32 write_words(const Bm25Form& form, const WeightedLexeme* lexemes, uint32 count, uint32* words)
{
    write_value(form.k1 * (1 - form.b), words);
    write_value(form.k1 * form.b / form.average, words + 2);
    uint32 at = bag_query_words;
    for (uint32 i = 0; i < count;) {
        const uint64 term = lexemes[i].term;
        double weight = 0;
        for (; i < count && lexemes[i].term == term; ++i) weight += lexemes[i].weight;
        write_part_number(term << frequency_bits, words + at);
        write_value(Min(weight, most_term_weight), words + at + 2);
        at += bag_query_term_words;
    }
    return at;
}

void append_text(const Bm25Form& form, const WeightedLexeme* lexemes, uint32 count, StringInfo text)
{
    appendStringInfoChar(text, '[');
    append_number(text, form.k1);
    appendStringInfoChar(text, ',');
    append_number(text, form.b);
    appendStringInfoChar(text, ',');
    append_number(text, form.average);
    appendStringInfoChar(text, ']');
    for (uint32 i = 0; i < count; ++i) {
        appendStringInfoChar(text, ' ');
        append_name(text, lexemes[i].bytes, lexemes[i].length);
        appendStringInfoChar(text, ':');
        append_number(text, lexemes[i].weight);
    }
}

double read_number(AttributeReader* reader, const char* expected)
{
    const AttributeToken token = read_token(reader, expected);
    double number = 0;
    if (!reads_as_number(*reader, token, &number)) refuse_text(*reader, token.at, "This is no number");
    return number;
}

void expect_character(AttributeReader* reader, char character, const char* fault)
{
    if (!take_character(reader, character)) refuse_text(*reader, reader->at, fault);
}

Bm25Form read_form(AttributeReader* reader)
{
    Bm25Form form = {};
    expect_character(reader, '[', "An opening bracket is missing");
    form.k1 = read_number(reader, "k1 is missing");
    expect_character(reader, ',', "A comma is missing after k1");
    form.b = read_number(reader, "b is missing");
    expect_character(reader, ',', "A comma is missing after b");
    form.average = read_number(reader, "The average length is missing");
    expect_character(reader, ']', "A closing bracket is missing");
    check_form(form);
    return form;
}

void refuse_same_lexemes(const WeightedLexeme* lexemes, uint32 count)
{
    for (uint32 i = 1; i < count; ++i) {
        if (!same_lexeme(lexemes[i - 1], lexemes[i])) continue;
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                        errmsg("lexeme \"%s\" has two weights",
                               pnstrdup(lexemes[i].bytes, static_cast<Size>(lexemes[i].length)))));
    }
}

}  // namespace

void check_form(const Bm25Form& form)
{
    check_range("k1", form.k1, 0, 1000);
    check_range("b", form.b, 0, 1);
    check_range("the average length", form.average, 1, 1e9);
}

void check_weight(double weight)
{
    check_range("a weight", weight, least_term_weight, most_term_weight);
}

void check_lexeme_count_of_query(Size count)
{
    if (count <= max_query_terms) return;
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("bm25_query of too many lexemes"),
                    errdetail("It may have %u.", max_query_terms)));
}

PartsValue* make_bm25_query(const Bm25Form& form, WeightedLexeme* lexemes, uint32 count)
{
    StringInfoData text;
    initStringInfo(&text);
    append_text(form, lexemes, count, &text);
    std::sort(lexemes, lexemes + count, lexeme_comes_before);
    auto* words = static_cast<uint32*>(palloc(sizeof(uint32) * (bag_query_words + bag_query_term_words * count)));
    const uint32 word_count = write_words(form, lexemes, count, words);
    PartsValue* query = make_parts(words, word_count, text);
    pfree(words);
    pfree(text.data);
    return query;
}

PartsValue* parse_bm25_query(const char* literal)
{
    AttributeReader reader = {
        "bm25_query", "[k1,b,average length] lexeme:weight ..., as in [1.2,0.75,100] cat:2.5 dog:1", literal, literal};
    const Bm25Form form = read_form(&reader);
    uint32 count = 0;
    uint32 capacity = 16;
    auto* lexemes = static_cast<WeightedLexeme*>(palloc(sizeof(WeightedLexeme) * capacity));
    for (skip_blanks(&reader); *reader.at != '\0'; skip_blanks(&reader)) {
        CHECK_FOR_INTERRUPTS();
        check_lexeme_count_of_query(Size{count} + 1);
        if (count == capacity) {
            capacity *= 2;
            lexemes = static_cast<WeightedLexeme*>(repalloc(lexemes, sizeof(WeightedLexeme) * capacity));
        }
        const AttributeToken name = read_name(&reader);
        const double weight = read_number(&reader, "A weight is missing");
        check_weight(weight);
        lexemes[count++] = {name.bytes, name.length, weight,
                            term_of_lexeme(name.bytes, static_cast<Size>(name.length))};
    }
    PartsValue* query = make_bm25_query(form, lexemes, count);
    refuse_same_lexemes(lexemes, count);  // which are sorted now
    pfree(lexemes);
    return query;
}

}  // namespace pgwarp
