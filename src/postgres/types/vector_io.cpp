// Text and binary form of vectors, and their type modifier.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>

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

Vector* make_vector(int dim)
{
    Vector* vector = static_cast<Vector*>(palloc0(vector_size(dim)));
    SET_VARSIZE(vector, vector_size(dim));
    vector->dim = static_cast<int16>(dim);
    return vector;
}

void check_dim(int dim)
{
    if (dim < 1) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("vector must have at least 1 dimension")));
    if (dim > vector_max_dim) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("vector cannot have more than %d dimensions", vector_max_dim)));
    }
}

void check_expected_dim(int32 typmod, int dim)
{
    if (typmod != -1 && typmod != dim) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("expected %d dimensions, not %d", typmod, dim)));
    }
}

void refuse_different_dims(const Vector* a, const Vector* b)
{
    ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("different vector dimensions %d and %d", a->dim, b->dim)));
    pg_unreachable();
}

void check_element(float value)
{
    if (std::isnan(value)) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("NaN not allowed in vector")));
    if (std::isinf(value)) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("infinite value not allowed in vector")));
    }
}

namespace
{

bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

const char* skip_spaces(const char* at)
{
    while (is_space(*at)) ++at;
    return at;
}

[[noreturn]] void syntax_error(const char* literal, const char* detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("invalid input syntax for type vector: \"%s\"", literal),
                    detail != nullptr ? errdetail("%s", detail) : 0));
    pg_unreachable();
}

// Read one element at `at`; returns where it ends.
const char* read_element(const char* literal, const char* at, const char* literal_end, float* value)
{
    // Plain numbers. All else (hexadecimal, a plus sign, out of range, no number) is strtof's to judge, as in real.
    const std::from_chars_result plain = std::from_chars(at, literal_end, *value);
    const bool ends = *plain.ptr == ',' || *plain.ptr == ']' || is_space(*plain.ptr);
    if (plain.ec == std::errc() && ends && std::isfinite(*value)) return plain.ptr;
    char* end = nullptr;
    errno = 0;
    *value = strtof(at, &end);
    if (end == at) syntax_error(literal, nullptr);
    // Underflow to zero or a denormal is taken, an overflow isn't.
    if (errno == ERANGE && std::isinf(*value)) {
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("\"%s\" is out of range for type vector", pnstrdup(at, static_cast<Size>(end - at)))));
    }
    check_element(*value);
    return end;
}

// Read the elements between the brackets into `out`; returns the position after the closing bracket.
const char* read_elements(const char* literal, const char* at, float* out, int* dim)
{
    const char* literal_end = literal + strlen(literal);
    *dim = 0;
    at = skip_spaces(at);
    if (*at == ']') ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("vector must have at least 1 dimension")));
    for (;;) {
        if (*dim == vector_max_dim) check_dim(*dim + 1);
        at = skip_spaces(at);
        if (*at == '\0') syntax_error(literal, nullptr);
        at = skip_spaces(read_element(literal, at, literal_end, &out[(*dim)++]));
        if (*at == ',') {
            ++at;
        } else if (*at == ']') {
            return at + 1;
        } else {
            syntax_error(literal, nullptr);
        }
    }
}

}  // namespace
}  // namespace pgwarp

using pgwarp::check_dim;
using pgwarp::check_element;
using pgwarp::check_expected_dim;
using pgwarp::make_vector;
using pgwarp::read_elements;
using pgwarp::skip_spaces;
using pgwarp::syntax_error;
using pgwarp::Vector;
using pgwarp::vector_max_dim;

// Convert text to a vector.
PGWARP_FUNCTION(vector_in)
{
    const char* literal = PG_GETARG_CSTRING(0);
    const int32 typmod = PG_GETARG_INT32(2);
    const char* at = skip_spaces(literal);
    if (*at != '[') syntax_error(literal, "Vector contents must start with \"[\".");
    float elements[vector_max_dim];
    int dim;
    at = skip_spaces(read_elements(literal, at + 1, elements, &dim));
    if (*at != '\0') syntax_error(literal, "Junk after closing right brace.");
    check_expected_dim(typmod, dim);
    Vector* result = make_vector(dim);
    memcpy(result->x, elements, sizeof(float) * static_cast<Size>(dim));
    PG_RETURN_VECTOR(result);
}

// Convert a vector to text, each element in its shortest form.
PGWARP_FUNCTION(vector_out)
{
    const Vector* vector = PG_GETARG_VECTOR(0);
    char* text = static_cast<char*>(palloc(static_cast<Size>(FLOAT_SHORTEST_DECIMAL_LEN) * vector->dim + 2));
    char* at = text;
    *at++ = '[';
    for (int i = 0; i < vector->dim; ++i) {
        if (i > 0) *at++ = ',';
        at += float_to_shortest_decimal_bufn(vector->x[i], at);
    }
    *at++ = ']';
    *at = '\0';
    PG_RETURN_CSTRING(text);
}

// Convert a type modifier.
PGWARP_FUNCTION(vector_typmod_in)
{
    ArrayType* modifiers = PG_GETARG_ARRAYTYPE_P(0);
    int count;
    const int32* values = ArrayGetIntegerTypmods(modifiers, &count);
    if (count != 1) ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid type modifier")));
    if (values[0] < 1) {
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("dimensions for type vector must be at least 1")));
    }
    if (values[0] > vector_max_dim) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("dimensions for type vector cannot exceed %d", vector_max_dim)));
    }
    PG_RETURN_INT32(values[0]);
}

// Convert the external binary form to a vector.
PGWARP_FUNCTION(vector_recv)
{
    StringInfo buffer = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    const int32 typmod = PG_GETARG_INT32(2);
    const int16 dim = static_cast<int16>(pq_getmsgint(buffer, sizeof(int16)));
    const int16 unused = static_cast<int16>(pq_getmsgint(buffer, sizeof(int16)));
    check_dim(dim);
    check_expected_dim(typmod, dim);
    if (unused != 0) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("expected unused to be 0, not %d", unused)));
    }
    Vector* result = make_vector(dim);
    for (int i = 0; i < dim; ++i) {
        result->x[i] = pq_getmsgfloat4(buffer);
        check_element(result->x[i]);
    }
    PG_RETURN_VECTOR(result);
}

// Convert a vector to the external binary form.
PGWARP_FUNCTION(vector_send)
{
    const Vector* vector = PG_GETARG_VECTOR(0);
    StringInfoData buffer;
    pq_begintypsend(&buffer);
    pq_sendint16(&buffer, static_cast<uint16>(vector->dim));
    pq_sendint16(&buffer, static_cast<uint16>(vector->unused));
    for (int i = 0; i < vector->dim; ++i) pq_sendfloat4(&buffer, vector->x[i]);
    PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}
