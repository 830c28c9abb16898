// Reads queries of attributes.
#include "postgres/types/attributes.h"

#include <algorithm>
#include <limits>

#include "postgres/types/attribute_text.h"

extern "C" {
#include "miscadmin.h"
}

namespace pgwarp
{

namespace
{

constexpr double infinity = std::numeric_limits<double>::infinity();

// A member of an item: a range of numbers, or a category.
struct Member {
    uint64 first;  // as in the words; a range without numbers has first > last
    uint64 last;
    // Ends of a range, for its text. A closed infinity has no bound.
    double lower;
    double upper;
    bool lower_open;
    bool upper_open;
};

struct QueryParser {
    AttributeReader reader;
    StringInfoData text;
    uint32* words;  // [word_capacity]
    uint32 word_count;
    uint32 word_capacity;
    Member* members;  // of the item
    uint32 count;
    uint32 capacity;
    StringInfoData categories;  // text of the item's categories, with commas
};

[[noreturn]] void refuse_length()
{
    ereport(ERROR,
            (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("attribute query is too long"),
             errdetail("Its items take 3 words each and 2 for each value or 4 for each range, together at most %u.",
                       max_list_words)));
    pg_unreachable();
}

void add_member(QueryParser* parser, const Member& member)
{
    if (parser->count == max_list_words) refuse_length();
    if (parser->count == parser->capacity) {
        parser->capacity *= 2;
        parser->members = static_cast<Member*>(repalloc(parser->members, sizeof(Member) * parser->capacity));
    }
    parser->members[parser->count++] = member;
}

// Returns the place of `count` more words.
uint32* add_words(QueryParser* parser, uint32 count)
{
    if (parser->word_count + count > max_list_words) refuse_length();
    if (parser->word_count + count > parser->word_capacity) {
        parser->word_capacity *= 2;
        parser->words = static_cast<uint32*>(repalloc(parser->words, sizeof(uint32) * parser->word_capacity));
    }
    parser->word_count += count;
    return parser->words + parser->word_count - count;
}

double read_bound(AttributeReader* reader)
{
    const AttributeToken token = read_token(reader, "A bound of a range is missing");
    double bound = 0;
    if (!reads_as_number(*reader, token, &bound)) refuse_text(*reader, token.at, "A bound of a range is no number");
    return bound;
}

// Reads a range behind its first bracket, which stands at `begin`.
Member read_range(AttributeReader* reader, const char* begin)
{
    Member range = {};
    range.lower = -infinity;
    range.upper = infinity;
    if (!take_character(reader, ',')) {
        range.lower = read_bound(reader);
        range.lower_open = *begin == '(';
        if (!take_character(reader, ',')) refuse_text(*reader, reader->at, "A comma in a range is missing");
    }
    skip_blanks(reader);
    const bool bounded = *reader->at != ')' && *reader->at != ']';
    if (bounded) range.upper = read_bound(reader);
    const bool open = take_character(reader, ')');
    if (!open && !take_character(reader, ']')) refuse_text(*reader, reader->at, "A range has no closing bracket");
    range.upper_open = bounded && open;
    if (range.lower > range.upper) {
        const auto length = static_cast<Size>(reader->at - begin);
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("range \"%s%s\" is the wrong way round", pnstrdup(begin, Min(length, 60)),
                               length > 60 ? "..." : ""),
                        errhint("The lower bound comes first.")));
    }
    range.first = ordered_number(range.lower) + (range.lower_open ? 1 : 0);
    range.last = ordered_number(range.upper) - (range.upper_open ? 1 : 0);
    return range;
}

// Reads a member; returns whether it is of numbers.
bool read_member(QueryParser* parser)
{
    AttributeReader* reader = &parser->reader;
    skip_blanks(reader);
    const char* begin = reader->at;
    if (take_character(reader, '[') || take_character(reader, '(')) {
        add_member(parser, read_range(reader, begin));
        return true;
    }
    const AttributeToken token = read_token(reader, "A value is missing");
    Member member = {};
    if (reads_as_number(*reader, token, &member.lower)) {
        member.upper = member.lower;
        member.first = member.last = ordered_number(member.lower);
        add_member(parser, member);
        return true;
    }
    if (parser->count > 0) appendStringInfoChar(&parser->categories, ',');
    append_category(&parser->categories, token.bytes, token.length);
    member.first = member.last = hash_category(token.bytes, static_cast<Size>(token.length));
    add_member(parser, member);
    return false;
}

// Reads the members of an item; returns whether they are numbers.
bool read_members(QueryParser* parser)
{
    AttributeReader* reader = &parser->reader;
    if (!take_character(reader, '{')) return read_member(parser);
    if (take_character(reader, '}')) return true;
    const char* begin = reader->at;
    const bool numbers = read_member(parser);
    while (take_character(reader, ',')) {
        skip_blanks(reader);
        begin = reader->at;
        if (read_member(parser) != numbers)
            refuse_text(*reader, begin, "Numbers and categories (quoted, if they read as numbers) are in one item");
    }
    if (!take_character(reader, '}')) refuse_text(*reader, reader->at, "A comma or a closing brace is missing");
    return numbers;
}

// Sorts the members, drops ranges without numbers, and unites those that meet.
void unite_members(QueryParser* parser)
{
    Member* members = parser->members;
    std::sort(members, members + parser->count, [](const Member& a, const Member& b) { return a.first < b.first; });
    uint32 kept = 0;
    for (uint32 i = 0; i < parser->count; ++i) {
        const Member& member = members[i];
        if (member.first > member.last) continue;
        const uint64 last = kept == 0 ? 0 : members[kept - 1].last;
        if (kept == 0 || (member.first > last && member.first - last > 1)) {
            members[kept++] = member;
        } else if (member.last > last) {
            members[kept - 1].last = member.last;
            members[kept - 1].upper = member.upper;
            members[kept - 1].upper_open = member.upper_open;
        }
    }
    parser->count = kept;
}

void append_range(StringInfo text, const Member& range)
{
    if (range.lower == range.upper) return append_number(text, range.lower);
    const bool lower_bound = range.first != ordered_number(-infinity);
    const bool upper_bound = range.last != ordered_number(infinity);
    appendStringInfoChar(text, lower_bound && !range.lower_open ? '[' : '(');
    if (lower_bound) append_number(text, range.lower);
    appendStringInfoChar(text, ',');
    if (upper_bound) append_number(text, range.upper);
    appendStringInfoChar(text, upper_bound && !range.upper_open ? ']' : ')');
}

// Writes the members as text: united ranges, or all categories.
void append_members(QueryParser* parser, bool numbers, bool several)
{
    StringInfo text = &parser->text;
    if (several) appendStringInfoChar(text, '{');
    for (uint32 i = 0; numbers && i < parser->count; ++i) {
        if (i > 0) appendStringInfoChar(text, ',');
        append_range(text, parser->members[i]);
    }
    if (!numbers) appendBinaryStringInfo(text, parser->categories.data, parser->categories.len);
    if (several) appendStringInfoChar(text, '}');
}

void write_item(QueryParser* parser, const AttributeToken& name, bool numbers)
{
    bool ranges = false;
    for (uint32 i = 0; i < parser->count; ++i) ranges = ranges || parser->members[i].first != parser->members[i].last;
    const uint64 hash = hash_name(name.bytes, static_cast<Size>(name.length), numbers);
    write_part_number(hash, add_words(parser, set_words));
    *add_words(parser, 1) = parser->count | (ranges ? is_range : 0);
    for (uint32 i = 0; i < parser->count; ++i) {
        write_part_number(parser->members[i].first, add_words(parser, set_words));
        if (ranges) write_part_number(parser->members[i].last, add_words(parser, set_words));
    }
}

void add_item(QueryParser* parser)
{
    parser->count = 0;
    resetStringInfo(&parser->categories);
    const AttributeToken name = read_name(&parser->reader);
    const bool numbers = read_members(parser);
    const uint32 written = parser->count;
    unite_members(parser);
    if (parser->text.len > 0) appendStringInfoChar(&parser->text, ' ');
    append_name(&parser->text, name.bytes, name.length);
    appendStringInfoChar(&parser->text, ':');
    append_members(parser, numbers, (numbers ? parser->count : written) != 1);
    write_item(parser, name, numbers);
}

}  // namespace

PartsValue* parse_attribute_query(const char* literal)
{
    QueryParser parser = {};
    parser.reader = {"attribute_query", "name:members ..., as in age:[30,40) education:{Bachelors,Masters} sex:Female",
                     literal, literal};
    initStringInfo(&parser.text);
    initStringInfo(&parser.categories);
    parser.word_capacity = 64;
    parser.words = static_cast<uint32*>(palloc(sizeof(uint32) * parser.word_capacity));
    parser.capacity = 16;
    parser.members = static_cast<Member*>(palloc(sizeof(Member) * parser.capacity));
    for (skip_blanks(&parser.reader); *parser.reader.at != '\0'; skip_blanks(&parser.reader)) {
        CHECK_FOR_INTERRUPTS();
        add_item(&parser);
    }
    PartsValue* query = make_parts(parser.words, parser.word_count, parser.text);
    pfree(parser.words);
    return query;
}

}  // namespace pgwarp
