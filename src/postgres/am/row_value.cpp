// Reads vectors of every element type, and lists, for builds and inserts.
#include "postgres/am/row_value.h"
#include "methods/description.h"
#include "postgres/storage/stored_value.h"
#include "postgres/types/any_vector.h"
#include "postgres/types/sparse_row.h"

namespace pgwarp
{

namespace
{

bool is_zero(const AnyVector& vector)
{
    const auto* halves = static_cast<const half_bits*>(vector.x);
    for (int i = 0; i < vector.dim; ++i) {
        if (float_of_half(halves[i]) != 0) return false;
    }
    return true;
}

}  // namespace

bool index_row_value(const IndexShape& shape, Datum value, float* out)
{
    const AnyVector vector = read_any_vector(shape.element, value);
    check_expected_dim(static_cast<int32>(shape.dimensions), static_cast<int>(width_of(vector)));
    copy_floats(vector, out);
    const bool raw = keeps_halves(shape);
    const bool zero = raw && is_zero(vector);
    free_any_vector(vector);
    if (shape.metric != static_cast<uint8>(Metric::cosine)) return true;
    return raw ? !zero : normalise(out, shape.dimensions);
}

bool index_row_list(const IndexShape& shape, const ListType& list, Datum value, RowView* row)
{
    if (list.dimensions != nullptr) check_expected_dim(static_cast<int32>(shape.dimensions), list.dimensions(value));
    *row = list.read_row(value);
    if (row->weights == nullptr || shape.metric != static_cast<uint8>(Metric::cosine)) return true;
    return sparse_norm(view_sparse_row(*row)) > 0;
}

// Writes a vector in the form of the delta logs. False when such a row isn't indexed.
static bool write_stored_vector(const IndexShape& shape, Datum value, char* out)
{
    if (shape.element != ElementType::float16) return index_row_value(shape, value, reinterpret_cast<float*>(out));
    const AnyVector vector = read_any_vector(shape.element, value);
    check_expected_dim(static_cast<int32>(shape.dimensions), vector.dim);
    memcpy(out, vector.x, stored_value_bytes(shape));
    const bool indexed = shape.metric != static_cast<uint8>(Metric::cosine) || !is_zero(vector);
    free_any_vector(vector);
    return indexed;
}

StoredRow index_stored_value(const IndexShape& shape, const ListType* list, Datum value, Size room)
{
    StoredRow stored = {nullptr, stored_value_bytes(shape)};
    if (list != nullptr) {
        RowView row;
        if (!index_row_list(shape, *list, value, &row)) return stored;
        const Size words = row.word_count();
        stored.length = static_cast<uint32>((sizeof(uint32) + (row.weights != nullptr ? sizeof(float) : 0)) * words);
        stored.bytes = static_cast<char*>(palloc(stored.length + room));
        memcpy(stored.bytes, row.words, sizeof(uint32) * words);
        if (row.weights != nullptr) memcpy(stored.bytes + sizeof(uint32) * words, row.weights, sizeof(float) * words);
        return stored;
    }
    stored.bytes = static_cast<char*>(palloc(stored.length + room));
    if (write_stored_vector(shape, value, stored.bytes)) return stored;
    pfree(stored.bytes);
    stored.bytes = nullptr;
    return stored;
}

}  // namespace pgwarp
