// Makes values of the types attributes and attribute_query.
#include "postgres/types/attributes.h"

#include <algorithm>

#include "postgres/types/attribute_text.h"

extern "C" {
#include "common/hashfn.h"
}

namespace pgwarp
{

const PartsValue* read_parts(Datum value)
{
    return reinterpret_cast<const PartsValue*>(PG_DETOAST_DATUM(value));
}

void free_parts(const PartsValue* parts, Datum value)
{
    if (DatumGetPointer(value) != reinterpret_cast<const char*>(parts)) pfree(const_cast<PartsValue*>(parts));
}

PartsValue* make_parts(const uint32* words, uint32 word_count, const StringInfoData& text)
{
    const Size text_at = offsetof(PartsValue, words) + sizeof(uint32) * word_count;
    const Size size = text_at + static_cast<Size>(text.len);
    auto* value = static_cast<PartsValue*>(palloc(size));
    SET_VARSIZE(value, size);
    value->word_count = word_count;
    memcpy(value->words, words, sizeof(uint32) * word_count);
    memcpy(reinterpret_cast<char*>(value) + text_at, text.data, static_cast<Size>(text.len));
    return value;
}

uint64 hash_category(const char* bytes, Size length)
{
    return hash_bytes_extended(reinterpret_cast<const unsigned char*>(bytes), static_cast<int>(length), 0);
}

uint64 hash_name(const char* bytes, Size length, bool of_number)
{
    return (hash_category(bytes, length) & ~uint64{1}) | (of_number ? 1 : 0);
}

namespace
{

AttributeBuilder::Attribute* next_attribute(AttributeBuilder* builder, const char* name, int name_length)
{
    if (builder->count == most_attributes) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a value of type attributes cannot have more than %u attributes", most_attributes)));
    }
    if (builder->count == builder->capacity) {
        builder->capacity *= 2;
        builder->attributes = static_cast<AttributeBuilder::Attribute*>(
            repalloc(builder->attributes, sizeof(AttributeBuilder::Attribute) * builder->capacity));
    }
    AttributeBuilder::Attribute* attribute = &builder->attributes[builder->count++];
    attribute->name_bytes = name;
    attribute->name_length = name_length;
    if (builder->text.len > 0) appendStringInfoChar(&builder->text, ' ');
    append_name(&builder->text, name, name_length);
    appendStringInfoChar(&builder->text, ':');
    return attribute;
}

// The order of names: by hash, then by their bytes.
bool comes_before(const AttributeBuilder::Attribute& a, const AttributeBuilder::Attribute& b)
{
    if (a.name != b.name) return a.name < b.name;
    if (a.name_length != b.name_length) return a.name_length < b.name_length;
    return memcmp(a.name_bytes, b.name_bytes, static_cast<Size>(a.name_length)) < 0;
}

bool same_name(const AttributeBuilder::Attribute& a, const AttributeBuilder::Attribute& b)
{
    return a.name_length == b.name_length && memcmp(a.name_bytes, b.name_bytes, static_cast<Size>(a.name_length)) == 0;
}

// Attributes of one name are neighbours in the order of hashes, of which only the last bit can differ.
void refuse_same_names(const AttributeBuilder& builder)
{
    for (uint32 i = 1; i < builder.count; ++i) {
        const AttributeBuilder::Attribute& attribute = builder.attributes[i];
        if (!same_name(builder.attributes[i - 1], attribute)) continue;
        ereport(ERROR, (errcode(builder.duplicate_sqlstate),
                        errmsg("attribute \"%s\" has two values",
                               pnstrdup(attribute.name_bytes, static_cast<Size>(attribute.name_length)))));
    }
}

}  // namespace

void begin_attributes(AttributeBuilder* builder, int duplicate_sqlstate)
{
    initStringInfo(&builder->text);
    builder->count = 0;
    builder->capacity = 16;
    builder->attributes =
        static_cast<AttributeBuilder::Attribute*>(palloc(sizeof(AttributeBuilder::Attribute) * builder->capacity));
    builder->duplicate_sqlstate = duplicate_sqlstate;
}

void add_number(AttributeBuilder* builder, const char* name, int name_length, double value)
{
    AttributeBuilder::Attribute* attribute = next_attribute(builder, name, name_length);
    attribute->name = hash_name(name, static_cast<Size>(name_length), true);
    attribute->value = ordered_number(value);
    append_number(&builder->text, value);
}

void add_category(AttributeBuilder* builder, const char* name, int name_length, const char* value, int length)
{
    AttributeBuilder::Attribute* attribute = next_attribute(builder, name, name_length);
    attribute->name = hash_name(name, static_cast<Size>(name_length), false);
    attribute->value = hash_category(value, static_cast<Size>(length));
    append_category(&builder->text, value, length);
}

PartsValue* finish_attributes(AttributeBuilder* builder)
{
    AttributeBuilder::Attribute* attributes = builder->attributes;
    std::sort(attributes, attributes + builder->count, comes_before);
    refuse_same_names(*builder);
    auto* words = static_cast<uint32*>(palloc(sizeof(uint32) * attribute_words * (builder->count + 1)));
    uint32 word_count = 0;
    for (uint32 i = 0; i < builder->count; ++i) {
        if (i > 0 && attributes[i].name == attributes[i - 1].name) continue;
        write_part_number(attributes[i].name, words + word_count);
        write_part_number(attributes[i].value, words + word_count + 2);
        word_count += attribute_words;
    }
    PartsValue* value = make_parts(words, word_count, builder->text);
    pfree(words);
    return value;
}

}  // namespace pgwarp
