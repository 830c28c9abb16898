// Text and binary form of sparse vectors, and their type modifier. Indices count from 1 in text, from 0 elsewhere.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/sparsevec.h"
#include "postgres/types/vector.h"
#include "postgres/types/vector_text.h"

#include <algorithm>
#include <climits>
#include <cmath>

extern "C" {
#include "common/shortest_dec.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

namespace pgwarp
{

void check_sparsevec_dim(int dim)
{
    if (dim < 1) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("sparsevec must have at least 1 dimension")));
    if (dim > sparsevec_max_dim) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("sparsevec cannot have more than %d dimensions", sparsevec_max_dim)));
    }
}

namespace
{

[[noreturn]] void refuse_many_elements()
{
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("sparsevec cannot have more than %d non-zero elements", sparsevec_max_nnz)));
    pg_unreachable();
}

}  // namespace

void check_sparsevec_nnz(int nnz, int dim)
{
    if (nnz < 0) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("sparsevec cannot have negative number of elements")));
    }
    if (nnz > sparsevec_max_nnz) refuse_many_elements();
    if (nnz > dim) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("sparsevec cannot have more elements than dimensions")));
    }
}

void check_sparsevec_element(float value)
{
    if (std::isnan(value)) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("NaN not allowed in sparsevec")));
    if (std::isinf(value)) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("infinite value not allowed in sparsevec")));
    }
}

namespace
{

// Check an index, from 0, against the one before it in the vector, which is -1 before the first.
void check_sparsevec_index(int32 index, int32 previous, int dim)
{
    const char* fault = nullptr;
    if (index < 0 || index >= dim) {
        fault = "sparsevec index out of bounds";
    } else if (index < previous) {
        fault = "sparsevec indices must be in ascending order";
    } else if (index == previous) {
        fault = "sparsevec indices must not contain duplicates";
    }
    if (fault != nullptr) ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("%s", fault)));
}

struct SparseElement {
    int32 index;  // from 0; any number until it is checked
    float value;
};

// Reads the text form, as in "{1:1.5,3:2}/5", from left to right.
class SparseText
{
public:
    explicit SparseText(const char* literal) : literal_(literal), at_(literal), end_(literal + strlen(literal)) {}

    // Write the elements that are not zero, in the order of the text, to elements[max_elements()]; return their number.
    int read_elements(SparseElement* elements);
    int read_dim();
    // The number of elements that the text has room for. Raises 54000 where a sparsevec has not.
    int max_elements() const;

private:
    [[noreturn]] void refuse(const char* detail = nullptr) const;
    // Pass over blanks and `c`.
    void expect(char c, const char* detail = nullptr);
    int32 read_integer();
    float read_value();
    SparseElement read_element();

    const char* literal_;
    const char* at_;
    const char* end_;
};

void SparseText::refuse(const char* detail) const
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("invalid input syntax for type sparsevec: \"%s\"", literal_),
                    detail != nullptr ? errdetail("%s", detail) : 0));
    pg_unreachable();
}

int SparseText::max_elements() const
{
    const auto commas = std::count(literal_, end_, ',');
    if (commas >= sparsevec_max_nnz) refuse_many_elements();
    return static_cast<int>(commas) + 1;
}

void SparseText::expect(char c, const char* detail)
{
    at_ = skip_spaces(at_);
    if (*at_ != c) refuse(detail);
    ++at_;
}

// Numbers beyond the range become its ends, so that the caller's check of bounds refuses them.
int32 SparseText::read_integer()
{
    char* end = nullptr;
    const long value = strtol(at_, &end, 10);
    if (end == at_) refuse();
    at_ = end;
    return static_cast<int32>(std::clamp<long>(value, -INT_MAX, INT_MAX));
}

// Unlike in a vector, a value that is too small for a float is refused: it would leave no element.
float SparseText::read_value()
{
    at_ = skip_spaces(at_);
    const FloatText number = read_float(at_, end_, '}');
    if (number.end == at_) refuse();
    if (number.out_of_range && (number.value == 0 || std::isinf(number.value))) {
        const Size length = static_cast<Size>(number.end - at_);
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("\"%s\" is out of range for type sparsevec", pnstrdup(at_, length))));
    }
    check_sparsevec_element(number.value);
    at_ = number.end;
    return number.value;
}

SparseElement SparseText::read_element()
{
    const int32 index = read_integer();
    expect(':');
    return {index - 1, read_value()};
}

int SparseText::read_elements(SparseElement* elements)
{
    expect('{', "Vector contents must start with \"{\".");
    at_ = skip_spaces(at_);
    if (*at_ == '}') {
        ++at_;
        return 0;
    }
    int count = 0;
    for (;;) {
        const SparseElement element = read_element();
        if (element.value != 0) elements[count++] = element;
        at_ = skip_spaces(at_);
        if (*at_ != ',') break;
        ++at_;
    }
    expect('}');
    return count;
}

int SparseText::read_dim()
{
    expect('/', "Unexpected end of input.");
    const int dim = read_integer();
    at_ = skip_spaces(at_);
    if (*at_ != '\0') refuse("Junk after closing.");
    return dim;
}

void sort_by_index(SparseElement* elements, int count)
{
    const auto before = [](const SparseElement& a, const SparseElement& b) { return a.index < b.index; };
    if (!std::is_sorted(elements, elements + count, before)) std::sort(elements, elements + count, before);
}

}  // namespace
}  // namespace pgwarp

using pgwarp::check_expected_dim;
using pgwarp::check_sparsevec_dim;
using pgwarp::check_sparsevec_element;
using pgwarp::check_sparsevec_index;
using pgwarp::check_sparsevec_nnz;
using pgwarp::make_sparsevec;
using pgwarp::sort_by_index;
using pgwarp::SparseElement;
using pgwarp::SparseText;
using pgwarp::sparsevec_max_dim;
using pgwarp::sparsevec_values;
using pgwarp::SparseVector;

PGWARP_FUNCTION(pgwarp_sparsevec_in)
{
    SparseText text(PG_GETARG_CSTRING(0));
    auto* elements =
        static_cast<SparseElement*>(palloc(sizeof(SparseElement) * static_cast<Size>(text.max_elements())));
    const int nnz = text.read_elements(elements);
    const int dim = text.read_dim();
    check_sparsevec_dim(dim);
    check_expected_dim(PG_GETARG_INT32(2), dim);
    sort_by_index(elements, nnz);
    SparseVector* result = make_sparsevec(dim, nnz);
    float* values = sparsevec_values(result);
    for (int i = 0; i < nnz; ++i) {
        check_sparsevec_index(elements[i].index, i > 0 ? elements[i - 1].index : -1, dim);
        result->indices[i] = static_cast<uint32>(elements[i].index);
        values[i] = elements[i].value;
    }
    pfree(elements);
    PG_RETURN_SPARSEVEC(result);
}

// Writes each element in its shortest form as a float.
PGWARP_FUNCTION(pgwarp_sparsevec_out)
{
    const SparseVector* vector = PG_GETARG_SPARSEVEC(0);
    const float* values = sparsevec_values(vector);
    constexpr Size integer_length = 11;  // with its sign
    constexpr Size element_length = integer_length + FLOAT_SHORTEST_DECIMAL_LEN + 2;
    char* text = static_cast<char*>(palloc(element_length * static_cast<Size>(vector->nnz) + integer_length + 4));
    char* at = text;
    *at++ = '{';
    for (int i = 0; i < vector->nnz; ++i) {
        if (i > 0) *at++ = ',';
        at += pg_ltoa(static_cast<int32>(vector->indices[i]) + 1, at);
        *at++ = ':';
        at += float_to_shortest_decimal_bufn(values[i], at);
    }
    *at++ = '}';
    *at++ = '/';
    at += pg_ltoa(vector->dim, at);
    *at = '\0';
    PG_RETURN_CSTRING(text);
}

PGWARP_FUNCTION(pgwarp_sparsevec_typmod_in)
{
    int count;
    const int32* values = ArrayGetIntegerTypmods(PG_GETARG_ARRAYTYPE_P(0), &count);
    if (count != 1) ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid type modifier")));
    if (values[0] < 1) {
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("dimensions for type sparsevec must be at least 1")));
    }
    if (values[0] > sparsevec_max_dim) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("dimensions for type sparsevec cannot exceed %d", sparsevec_max_dim)));
    }
    PG_RETURN_INT32(values[0]);
}

PGWARP_FUNCTION(pgwarp_sparsevec_recv)
{
    StringInfo buffer = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
    const int32 dim = static_cast<int32>(pq_getmsgint(buffer, sizeof(int32)));
    const int32 nnz = static_cast<int32>(pq_getmsgint(buffer, sizeof(int32)));
    const int32 unused = static_cast<int32>(pq_getmsgint(buffer, sizeof(int32)));
    check_sparsevec_dim(dim);
    check_sparsevec_nnz(nnz, dim);
    check_expected_dim(PG_GETARG_INT32(2), dim);
    if (unused != 0) {
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("expected unused to be 0, not %d", unused)));
    }
    SparseVector* result = make_sparsevec(dim, nnz);
    int32 previous = -1;
    for (int i = 0; i < nnz; ++i) {
        const int32 index = static_cast<int32>(pq_getmsgint(buffer, sizeof(int32)));
        check_sparsevec_index(index, previous, dim);
        result->indices[i] = static_cast<uint32>(index);
        previous = index;
    }
    float* values = sparsevec_values(result);
    for (int i = 0; i < nnz; ++i) {
        values[i] = pq_getmsgfloat4(buffer);
        check_sparsevec_element(values[i]);
        if (values[i] == 0) {
            ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                            errmsg("binary representation of sparsevec cannot contain zero values")));
        }
    }
    PG_RETURN_SPARSEVEC(result);
}

PGWARP_FUNCTION(pgwarp_sparsevec_send)
{
    const SparseVector* vector = PG_GETARG_SPARSEVEC(0);
    const float* values = sparsevec_values(vector);
    StringInfoData buffer;
    pq_begintypsend(&buffer);
    pq_sendint32(&buffer, static_cast<uint32>(vector->dim));
    pq_sendint32(&buffer, static_cast<uint32>(vector->nnz));
    pq_sendint32(&buffer, static_cast<uint32>(vector->unused));
    for (int i = 0; i < vector->nnz; ++i) pq_sendint32(&buffer, vector->indices[i]);
    for (int i = 0; i < vector->nnz; ++i) pq_sendfloat4(&buffer, values[i]);
    PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}
