#include "postgres/types/any_vector.h"

#include "numeric/bits.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/varbit.h"
}

namespace pgwarp
{

const char* element_type_name(ElementType element)
{
    if (element == ElementType::bit) return "bit";
    if (element == ElementType::sparse) return "sparsevec";
    return element == ElementType::float16 ? vector_type_name<half_bits> : vector_type_name<float>;
}

void refuse_different_dims(ElementType element, int a, int b)
{
    if (element != ElementType::bit) refuse_different_dims(element_type_name(element), a, b);
    ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("different bit lengths %d and %d", a, b)));
}

namespace
{

// The varlena may end before the last word does, so the words are a copy.
AnyVector read_bits(Datum value)
{
    VarBit* bits = DatumGetVarBitP(value);
    const int length = VARBITLEN(bits);
    void* words = palloc0(Max(Size{1}, words_of_bits(static_cast<Size>(length))) * sizeof(float));
    memcpy(words, VARBITS(bits), VARBITBYTES(bits));
    if (reinterpret_cast<Pointer>(bits) != DatumGetPointer(value)) pfree(bits);
    return {ElementType::bit, length, words, words};
}

template <class Element>
AnyVector read_as(ElementType element, Datum value)
{
    VectorOf<Element>* vector = datum_get_vector<Element>(value);
    const bool copied = reinterpret_cast<Pointer>(vector) != DatumGetPointer(value);
    return {element, vector->dim, vector->x, copied ? vector : nullptr};
}

}  // namespace

AnyVector read_any_vector(ElementType element, Datum value)
{
    if (element == ElementType::bit) return read_bits(value);
    return element == ElementType::float16 ? read_as<half_bits>(element, value) : read_as<float>(element, value);
}

void free_any_vector(const AnyVector& vector)
{
    if (vector.copy != nullptr) pfree(vector.copy);
}

uint32 width_of(const AnyVector& vector)
{
    const auto dim = static_cast<uint32>(vector.dim);
    return vector.element == ElementType::bit ? static_cast<uint32>(words_of_bits(dim)) : dim;
}

void copy_floats(const AnyVector& vector, float* out)
{
    if (vector.element != ElementType::float16) {
        memcpy(out, vector.x, sizeof(float) * width_of(vector));
        return;
    }
    const auto* halves = static_cast<const half_bits*>(vector.x);
    for (int i = 0; i < vector.dim; ++i) out[i] = float_of_half(halves[i]);
}

const float* floats_of(const AnyVector& vector)
{
    if (vector.element != ElementType::float16) return static_cast<const float*>(vector.x);
    auto* values = static_cast<float*>(palloc(sizeof(float) * static_cast<Size>(vector.dim)));
    copy_floats(vector, values);
    return values;
}

void round_to_element(ElementType element, float* values, int dim)
{
    if (element != ElementType::float16) return;
    for (int i = 0; i < dim; ++i) values[i] = float_of_half(checked_element<half_bits>(values[i]));
}

}  // namespace pgwarp
