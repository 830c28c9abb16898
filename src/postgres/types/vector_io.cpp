// Text and binary form of vectors and halfvecs, and their type modifier.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"
#include "postgres/types/vector_text.h"

#include <cmath>

extern "C" {
#include "common/shortest_dec.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "port.h"
#include "utils/array.h"
#include "utils/float.h"
}

namespace pgwarp
{

template <class Element>
void check_dim(int dim)
{
    const char* type = vector_type_name<Element>;
    if (dim < 1) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("%s must have at least 1 dimension", type)));
    if (dim > vector_max_dim) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("%s cannot have more than %d dimensions", type, vector_max_dim)));
    }
}
template void check_dim<float>(int dim);
template void check_dim<half_bits>(int dim);

void check_expected_dim(int32 typmod, int dim)
{
    if (typmod != -1 && typmod != dim) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("expected %d dimensions, not %d", typmod, dim)));
    }
}

void refuse_different_dims(const char* type, int a, int b)
{
    ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("different %s dimensions %d and %d", type, a, b)));
    pg_unreachable();
}

template <class Element>
void check_element(Element element)
{
    const float value = element_value(element);
    const char* type = vector_type_name<Element>;
    if (std::isnan(value)) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("NaN not allowed in %s", type)));
    if (std::isinf(value)) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("infinite value not allowed in %s", type)));
    }
}
template void check_element<float>(float element);
template void check_element<half_bits>(half_bits element);

namespace
{

// Whether a finite value is out of the type's range.
template <class Element>
bool too_large(float value)
{
    return std::isfinite(value) && std::isinf(element_value(make_element<Element>(value)));
}

}  // namespace

template <class Element>
Element checked_element(float value)
{
    if (too_large<Element>(value)) {
        char text[FLOAT_SHORTEST_DECIMAL_LEN];
        float_to_shortest_decimal_buf(value, text);
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("\"%s\" is out of range for type %s", text, vector_type_name<Element>)));
    }
    const Element element = make_element<Element>(value);
    check_element(element);
    return element;
}
template float checked_element<float>(float value);
template half_bits checked_element<half_bits>(float value);

namespace
{

template <class Element>
[[noreturn]] void syntax_error(const char* literal, const char* detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("invalid input syntax for type %s: \"%s\"", vector_type_name<Element>, literal),
                    detail != nullptr ? errdetail("%s", detail) : 0));
    pg_unreachable();
}

// Read one element at `at`; return the position after it.
template <class Element>
const char* read_element(const char* literal, const char* at, const char* literal_end, Element* element)
{
    const FloatText number = read_float(at, literal_end, ']');
    if (number.end == at) syntax_error<Element>(literal, nullptr);
    // Underflow to zero or a denormal is accepted; an overflow is refused.
    if ((number.out_of_range && std::isinf(number.value)) || too_large<Element>(number.value)) {
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("\"%s\" is out of range for type %s", pnstrdup(at, static_cast<Size>(number.end - at)),
                               vector_type_name<Element>)));
    }
    *element = make_element<Element>(number.value);
    check_element(*element);
    return number.end;
}

// Read the elements between the brackets into `out`; returns the position after the closing bracket.
template <class Element>
const char* read_elements(const char* literal, const char* at, Element* out, int* dim)
{
    const char* literal_end = literal + strlen(literal);
    *dim = 0;
    at = skip_spaces(at);
    if (*at == ']') check_dim<Element>(0);
    for (;;) {
        if (*dim == vector_max_dim) check_dim<Element>(*dim + 1);
        at = skip_spaces(at);
        if (*at == '\0') syntax_error<Element>(literal, nullptr);
        at = skip_spaces(read_element(literal, at, literal_end, &out[(*dim)++]));
        if (*at == ',') {
            ++at;
        } else if (*at == ']') {
            return at + 1;
        } else {
            syntax_error<Element>(literal, nullptr);
        }
    }
}

}  // namespace
}  // namespace pgwarp

using pgwarp::check_dim;
using pgwarp::check_element;
using pgwarp::check_expected_dim;
using pgwarp::datum_get_vector;
using pgwarp::element_value;
using pgwarp::half_bits;
using pgwarp::make_vector;
using pgwarp::read_elements;
using pgwarp::skip_spaces;
using pgwarp::syntax_error;
using pgwarp::vector_max_dim;
using pgwarp::vector_type_name;
using pgwarp::VectorOf;

namespace
{

template <class Element>
Datum read_text(FunctionCallInfo fcinfo)
{
    const char* literal = PG_GETARG_CSTRING(0);
    const int32 typmod = PG_GETARG_INT32(2);
    const char* at = skip_spaces(literal);
    if (*at != '[') syntax_error<Element>(literal, "Vector contents must start with \"[\".");
    Element elements[vector_max_dim];
    int dim;
    at = skip_spaces(read_elements(literal, at + 1, elements, &dim));
    if (*at != '\0') syntax_error<Element>(literal, "Junk after closing right brace.");
    check_expected_dim(typmod, dim);
    VectorOf<Element>* result = make_vector<Element>(dim);
    memcpy(result->x, elements, sizeof(Element) * static_cast<Size>(dim));
    PG_RETURN_VECTOR(result);
}

// Convert a vector to text, each element in its shortest form as a float.
template <class Element>
Datum write_text(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* vector = datum_get_vector<Element>(PG_GETARG_DATUM(0));
    char* text = static_cast<char*>(palloc(static_cast<Size>(FLOAT_SHORTEST_DECIMAL_LEN) * vector->dim + 2));
    char* at = text;
    *at++ = '[';
    for (int i = 0; i < vector->dim; ++i) {
        if (i > 0) *at++ = ',';
        at += float_to_shortest_decimal_bufn(element_value(vector->x[i]), at);
    }
    *at++ = ']';
    *at = '\0';
    PG_RETURN_CSTRING(text);
}

template <class Element>
Datum read_typmod(FunctionCallInfo fcinfo)
{
    const char* type = vector_type_name<Element>;
    ArrayType* modifiers = PG_GETARG_ARRAYTYPE_P(0);
    int count;
    const int32* values = ArrayGetIntegerTypmods(modifiers, &count);
    if (count != 1) ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid type modifier")));
    if (values[0] < 1) {
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("dimensions for type %s must be at least 1", type)));
    }
    if (values[0] > vector_max_dim) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("dimensions for type %s cannot exceed %d", type, vector_max_dim)));
    }
    PG_RETURN_INT32(values[0]);
}

void receive_element(StringInfo buffer, float* element)
{
    *element = pq_getmsgfloat4(buffer);
}

void receive_element(StringInfo buffer, half_bits* element)
{
    *element = static_cast<half_bits>(pq_getmsgint(buffer, sizeof(half_bits)));
}

void send_element(StringInfo buffer, float element)
{
    pq_sendfloat4(buffer, element);
}

void send_element(StringInfo buffer, half_bits element)
{
    pq_sendint16(buffer, element);
}

template <class Element>
Datum read_binary(FunctionCallInfo fcinfo)
{
    StringInfo buffer = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    const int32 typmod = PG_GETARG_INT32(2);
    const int16 dim = static_cast<int16>(pq_getmsgint(buffer, sizeof(int16)));
    const int16 unused = static_cast<int16>(pq_getmsgint(buffer, sizeof(int16)));
    check_dim<Element>(dim);
    check_expected_dim(typmod, dim);
    if (unused != 0) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("expected unused to be 0, not %d", unused)));
    }
    VectorOf<Element>* result = make_vector<Element>(dim);
    for (int i = 0; i < dim; ++i) {
        receive_element(buffer, &result->x[i]);
        check_element(result->x[i]);
    }
    PG_RETURN_VECTOR(result);
}

template <class Element>
Datum write_binary(FunctionCallInfo fcinfo)
{
    const VectorOf<Element>* vector = datum_get_vector<Element>(PG_GETARG_DATUM(0));
    StringInfoData buffer;
    pq_begintypsend(&buffer);
    pq_sendint16(&buffer, static_cast<uint16>(vector->dim));
    pq_sendint16(&buffer, static_cast<uint16>(vector->unused));
    for (int i = 0; i < vector->dim; ++i) send_element(&buffer, vector->x[i]);
    PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

}  // namespace

PGWARP_VECTOR_FUNCTION(pgwarp_vector_in, pgwarp_halfvec_in, read_text)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_out, pgwarp_halfvec_out, write_text)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_typmod_in, pgwarp_halfvec_typmod_in, read_typmod)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_recv, pgwarp_halfvec_recv, read_binary)
PGWARP_VECTOR_FUNCTION(pgwarp_vector_send, pgwarp_halfvec_send, write_binary)
