// The types attributes and attribute_query: rows with ranges (protocol/part_rows.h). Both are stored in one layout, the
// words of their engine form and then their text form. So operators and indexes compare the words as they are stored,
// and output returns the text; the binary form is a byte with its version and the text.
//
// Text forms, of which attribute_text.h tells the words and quotes:
//   attributes:       name:value ...
//   attribute_query:  name:members ..., where members are one member or {member,...}, and a member is a value or a
//                     range [first,last], with ( or ) where the end is outside, and an end left out has no bound
#pragma once

#include "postgres/postgres_headers.h"

#include <span>
#include <string_view>

#include "protocol/format.h"
#include "protocol/part_rows.h"

extern "C" {
#include "lib/stringinfo.h"
}

namespace pgwarp
{

inline constexpr uint32 most_attributes = max_list_words / attribute_words;

struct PartsValue {
    int32 vl_len_;
    uint32 word_count;
    uint32 words[FLEXIBLE_ARRAY_MEMBER];  // then the text, without a zero at its end

    std::span<const uint32> parts() const { return {words, word_count}; }
    std::string_view text() const
    {
        const char* begin = reinterpret_cast<const char*>(words + word_count);
        return {begin, static_cast<Size>(reinterpret_cast<const char*>(this) + VARSIZE(this) - begin)};
    }
};

// Detoasts a value of either type; a copy is palloc'ed.
const PartsValue* read_parts(Datum value);
// Frees what read_parts() palloc'ed for this value.
void free_parts(const PartsValue* parts, Datum value);
// Makes a value from words and text.
PartsValue* make_parts(const uint32* words, uint32 word_count, const StringInfoData& text);

uint64 hash_category(const char* bytes, Size length);
uint64 hash_name(const char* bytes, Size length, bool of_number);

// Reads the text form of a query. Raises 22P02 for text of another form, 22000 for a range the wrong way round, 54000
// for a query of more than max_list_words.
PartsValue* parse_attribute_query(const char* literal);

// Collects the attributes of a row in palloc'ed memory.
struct AttributeBuilder {
    struct Attribute {
        uint64 name;
        uint64 value;
        const char* name_bytes;
        int name_length;
    };
    StringInfoData text;
    Attribute* attributes;
    uint32 count;
    uint32 capacity;
    int duplicate_sqlstate;  // of the error where a name comes twice
};

void begin_attributes(AttributeBuilder* builder, int duplicate_sqlstate);
// Add one attribute. The name must stay in memory until the end. Raise 54000 for more than most_attributes.
void add_number(AttributeBuilder* builder, const char* name, int name_length, double value);
void add_category(AttributeBuilder* builder, const char* name, int name_length, const char* value, int length);
// Makes the value. Of different names with one hash it keeps the first in the order of bytes.
PartsValue* finish_attributes(AttributeBuilder* builder);

}  // namespace pgwarp
