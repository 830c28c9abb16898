// Codes of the values of filter columns (protocol/attribute_codes.h), by their SQL types.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/am/index_columns.h"

namespace pgwarp
{

// How values of a type become codes.
enum class CodeForm : uint8 {
    none,
    int2,
    int4,
    int8,
    float4,
    float8,
    boolean,
    date,
    timestamp,
    timestamptz,
    oid,
    enumeration,
    numeric,
    uuid,
    text,
    bpchar,
    inet
};

// The form of a type, or of the type below a domain; none for types without one.
CodeForm code_form(Oid type);

// Whether codes are in the order of their values. Other codes tell equality only.
bool is_ordered(CodeForm form);
// Whether values that differ may have one code, so that rows have to be checked again.
bool may_tie(CodeForm form);
// Whether values of the two forms compare by their codes.
bool are_comparable(CodeForm left, CodeForm right);

// The code of a value that isn't NULL. `collation`: of a text; equal values under it have equal codes. May leave
// memory allocated.
uint64 code_of_value(CodeForm form, Oid collation, Datum value);

// The filter columns of an index.
struct AttributeCoder {
    int vector;  // position of the column that the index orders by
    int count;
    struct {
        CodeForm form;
        Oid collation;
    } columns[most_filter_columns];
};

// Raises an error for an index with a column whose type has no codes.
void open_attribute_coder(Relation index, AttributeCoder* coder);
// Writes the codes of a row, given the values of all columns of the index, to attributes[count].
void code_attributes(const AttributeCoder& coder, const Datum* values, const bool* nulls, uint64* attributes);

}  // namespace pgwarp
