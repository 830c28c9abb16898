// Reads and writes names and values of attributes.
#include "postgres/types/attribute_text.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

extern "C" {
#include "common/shortest_dec.h"
#include "mb/pg_wchar.h"
#include "utils/datetime.h"
}

namespace pgwarp
{

namespace
{

bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Whether a bare word may have the character. Characters of several bytes have none below 128.
bool is_bare(char c)
{
    return c != '\0' && !is_blank(c) && strchr(":,\"\\()[]{}", c) == nullptr;
}

AttributeToken read_quoted(AttributeReader* reader)
{
    const char* begin = reader->at;
    const char* end = begin + 1;
    bool escapes = false;
    for (; *end != '"'; ++end) {
        if (*end == '\\') {
            ++end;
            escapes = true;
        }
        if (*end == '\0') refuse_text(*reader, begin, "A quote has no end");
    }
    reader->at = end + 1;
    if (!escapes) return {begin, begin + 1, static_cast<int>(end - begin - 1), true};
    auto* bytes = static_cast<char*>(palloc(static_cast<Size>(end - begin)));
    int length = 0;
    for (const char* at = begin + 1; at < end; ++at) {
        if (*at == '\\') ++at;
        bytes[length++] = *at;
    }
    return {begin, bytes, length, true};
}

// Whether a word has the form of a date; its year, month and day then go to `fields`.
bool has_form_of_date(const char* word, int length, int* fields)
{
    if (length != 10 || word[4] != '-' || word[7] != '-') return false;
    fields[0] = fields[1] = fields[2] = 0;
    for (int i = 0; i < length; ++i) {
        if (i == 4 || i == 7) continue;
        if (word[i] < '0' || word[i] > '9') return false;
        int* field = &fields[i < 4 ? 0 : i < 7 ? 1 : 2];
        *field = *field * 10 + (word[i] - '0');
    }
    return true;
}

double read_date(const AttributeReader& reader, const AttributeToken& token, const int* fields)
{
    const int day =
        fields[1] >= 1 && fields[1] <= MONTHS_PER_YEAR && fields[0] > 0 ? date2j(fields[0], fields[1], fields[2]) : -1;
    int year = 0;
    int month = 0;
    int day_of_month = 0;
    if (day >= 0) j2date(day, &year, &month, &day_of_month);
    if (month != fields[1] || day_of_month != fields[2]) refuse_text(reader, token.at, "There is no such date");
    return static_cast<double>(day - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
}

// Whether strtod may read a word as a decimal number, an infinity or NaN.
bool may_be_number(const char* word, int length)
{
    if (length == 0 || strchr("0123456789+-.iInN", *word) == nullptr) return false;
    return memchr(word, 'x', static_cast<Size>(length)) == nullptr &&
           memchr(word, 'X', static_cast<Size>(length)) == nullptr;
}

void append_quoted(StringInfo text, const char* bytes, int length)
{
    appendStringInfoChar(text, '"');
    for (int i = 0; i < length; ++i) {
        if (bytes[i] == '"' || bytes[i] == '\\') appendStringInfoChar(text, '\\');
        appendStringInfoChar(text, bytes[i]);
    }
    appendStringInfoChar(text, '"');
}

void append_token(StringInfo text, const char* bytes, int length, bool bare)
{
    for (int i = 0; bare && i < length; ++i) bare = is_bare(bytes[i]);
    if (bare && length > 0) {
        appendBinaryStringInfo(text, bytes, length);
    } else {
        append_quoted(text, bytes, length);
    }
}

// Whether a bare word could be taken for a number. It may be true for others too, which are then quoted for nothing.
bool looks_like_number(const char* bytes, int length)
{
    int fields[3];
    if (has_form_of_date(bytes, length, fields)) return true;
    if (!may_be_number(bytes, length)) return false;
    char* word = pnstrdup(bytes, static_cast<Size>(length));
    char* end = nullptr;
    strtod(word, &end);
    const bool whole = *end == '\0';
    pfree(word);
    return whole;
}

}  // namespace

void refuse_text(const AttributeReader& reader, const char* at, const char* fault)
{
    const int place = pg_mbstrlen_with_len(reader.literal, static_cast<int>(at - reader.literal)) + 1;
    const int length = pg_mbcliplen(at, static_cast<int>(strlen(at)), 30);
    ereport(
        ERROR,
        (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("invalid input syntax for type %s", reader.type),
         length > 0 ? errdetail("%s at character %d: \"%s\".", fault, place, pnstrdup(at, static_cast<Size>(length)))
                    : errdetail("%s at the end of the text.", fault),
         errhint("Its form is %s.", reader.example)));
    pg_unreachable();
}

void skip_blanks(AttributeReader* reader)
{
    while (is_blank(*reader->at)) ++reader->at;
}

bool take_character(AttributeReader* reader, char character)
{
    skip_blanks(reader);
    if (*reader->at != character) return false;
    ++reader->at;
    return true;
}

AttributeToken read_token(AttributeReader* reader, const char* expected)
{
    skip_blanks(reader);
    if (*reader->at == '"') return read_quoted(reader);
    const char* begin = reader->at;
    while (is_bare(*reader->at)) ++reader->at;
    if (reader->at == begin) refuse_text(*reader, begin, expected);
    return {begin, begin, static_cast<int>(reader->at - begin), false};
}

AttributeToken read_name(AttributeReader* reader)
{
    const AttributeToken name = read_token(reader, "A name is missing");
    if (!take_character(reader, ':')) {
        const int length = pg_mbcliplen(name.bytes, name.length, 30);
        const char* more = length < name.length ? "..." : "";
        refuse_text(*reader, reader->at,
                    psprintf("A colon is missing after the name \"%.*s%s\"", length, name.bytes, more));
    }
    return name;
}

bool reads_as_number(const AttributeReader& reader, const AttributeToken& token, double* number)
{
    int fields[3];
    if (token.quoted) return false;
    if (has_form_of_date(token.bytes, token.length, fields)) {
        *number = read_date(reader, token, fields);
        return true;
    }
    if (!may_be_number(token.bytes, token.length)) return false;
    char* word = pnstrdup(token.bytes, static_cast<Size>(token.length));
    char* end = nullptr;
    errno = 0;
    *number = strtod(word, &end);
    if (*end != '\0' || end == word) return false;
    if (std::isnan(*number)) refuse_text(reader, token.at, "NaN without quotes is no value");
    if (errno == ERANGE && (*number == 0 || std::isinf(*number))) {
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("\"%.40s%s\" is out of range for type double precision", word,
                               token.length > 40 ? "..." : "")));
    }
    pfree(word);
    return true;
}

void append_name(StringInfo text, const char* bytes, int length)
{
    append_token(text, bytes, length, true);
}

void append_category(StringInfo text, const char* bytes, int length)
{
    append_token(text, bytes, length, !looks_like_number(bytes, length));
}

void append_number(StringInfo text, double number)
{
    char digits[DOUBLE_SHORTEST_DECIMAL_LEN];
    double_to_shortest_decimal_buf(number + 0.0, digits);  // one zero
    appendStringInfoString(text, digits);
}

}  // namespace pgwarp
