// The parts of the text forms of attributes and attribute_query.
//
// Blanks separate tokens. A token is a bare word, or a string in double quotes, in which a backslash stands before a
// quote or a backslash. A bare word ends at a blank and at : , " \ ( ) [ ] { }. A name is any token. A value is a
// number if it is a bare word that float8 reads as a decimal number or an infinity, or a date as YYYY-MM-DD, which is
// its seconds since 1970-01-01; all others are categories. Upper and lower case differ.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "lib/stringinfo.h"
}

namespace pgwarp
{

// A place in the text form.
struct AttributeReader {
    const char* type;     // the SQL type, for errors
    const char* example;  // of its text form, for errors
    const char* literal;
    const char* at;
};

struct AttributeToken {
    const char* at;     // its place in the literal
    const char* bytes;  // without quotes and backslashes; in the literal or palloc'ed
    int length;
    bool quoted;
};

void skip_blanks(AttributeReader* reader);
// Skips blanks and takes the character if it comes next.
bool take_character(AttributeReader* reader, char character);
// Reads a token; `expected` names it for the error if none comes next.
AttributeToken read_token(AttributeReader* reader, const char* expected);
// Reads a name with its colon.
AttributeToken read_name(AttributeReader* reader);
// Whether a value is a number, which goes to `number`. Raises an error for NaN, numbers out of range and days that no
// calendar has.
bool reads_as_number(const AttributeReader& reader, const AttributeToken& token, double* number);
// Raises 22P02: what is wrong at the place `at` of the literal.
[[noreturn]] void refuse_text(const AttributeReader& reader, const char* at, const char* fault);

// Write what read_token() and reads_as_number() read as the same.
void append_name(StringInfo text, const char* bytes, int length);
void append_category(StringInfo text, const char* bytes, int length);
void append_number(StringInfo text, double number);

}  // namespace pgwarp
