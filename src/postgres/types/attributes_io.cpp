// Input of attributes; output and binary form of attributes, attribute_query and bm25_query.
#include "postgres/types/attributes_io.h"

#include "postgres/fmgr_cpp.h"
#include "postgres/types/attribute_text.h"
#include "postgres/types/attributes.h"

extern "C" {
#include "libpq/pqformat.h"
}

namespace pgwarp
{

namespace
{

constexpr int binary_version = 1;

PartsValue* parse_attributes(const char* literal)
{
    AttributeReader reader = {
        "attributes", "name:value ..., as in age:39 education:\"Some college\"; attributes('age', age) makes it",
        literal, literal};
    AttributeBuilder builder;
    begin_attributes(&builder, ERRCODE_INVALID_TEXT_REPRESENTATION);
    for (skip_blanks(&reader); *reader.at != '\0'; skip_blanks(&reader)) {
        const AttributeToken name = read_name(&reader);
        const AttributeToken value = read_token(&reader, "A value is missing");
        double number = 0;
        if (reads_as_number(reader, value, &number)) {
            add_number(&builder, name.bytes, name.length, number);
        } else {
            add_category(&builder, name.bytes, name.length, value.bytes, value.length);
        }
    }
    return finish_attributes(&builder);
}

}  // namespace

const char* receive_parts_text(StringInfo buffer, const char* type)
{
    const int version = pq_getmsgbyte(buffer);
    if (version != binary_version) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                        errmsg("binary form of type %s has unknown version %d", type, version)));
    }
    int length = 0;
    return pq_getmsgtext(buffer, buffer->len - buffer->cursor, &length);
}

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_attributes_in)
{
    PG_RETURN_POINTER(pgwarp::parse_attributes(PG_GETARG_CSTRING(0)));
}

PGWARP_FUNCTION(pgwarp_attributes_recv)
{
    auto* buffer = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    PG_RETURN_POINTER(pgwarp::parse_attributes(pgwarp::receive_parts_text(buffer, "attributes")));
}

PGWARP_FUNCTION(pgwarp_attribute_query_in)
{
    PG_RETURN_POINTER(pgwarp::parse_attribute_query(PG_GETARG_CSTRING(0)));
}

PGWARP_FUNCTION(pgwarp_attribute_query_recv)
{
    auto* buffer = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    PG_RETURN_POINTER(pgwarp::parse_attribute_query(pgwarp::receive_parts_text(buffer, "attribute_query")));
}

PGWARP_FUNCTION(pgwarp_parts_out)
{
    const std::string_view text = pgwarp::read_parts(PG_GETARG_DATUM(0))->text();
    PG_RETURN_CSTRING(pnstrdup(text.data(), text.size()));
}

PGWARP_FUNCTION(pgwarp_parts_send)
{
    const std::string_view text = pgwarp::read_parts(PG_GETARG_DATUM(0))->text();
    StringInfoData buffer;
    pq_begintypsend(&buffer);
    pq_sendbyte(&buffer, pgwarp::binary_version);
    pq_sendtext(&buffer, text.data(), static_cast<int>(text.size()));
    PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}
