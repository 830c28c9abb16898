// Copies, normalises and collects queries.
#include "postgres/scan/query_value.h"

#include "postgres/types/any_vector.h"
#include "postgres/types/list_row.h"
#include "postgres/types/sparse_row.h"

namespace pgwarp
{

int query_length(ElementType element, Relation index)
{
    return has_dimensions(element) ? index_dimensions(index) : 0;
}

RowView view_query(const KeyType& key, Datum value, int length)
{
    if (key.list != nullptr) {
        const bool fits = key.list->dimensions == nullptr || key.list->dimensions(value) == length;
        return fits && key.list->can_read_query(value) ? key.list->read_query(value) : RowView{};
    }
    const AnyVector vector = read_any_vector(key.element, value);
    if (vector.dim != length) return {};
    return dense_rows(floats_of(vector), 1, width_of(vector));
}

RowView copy_query(const KeyType& key, Datum value, int length)
{
    if (key.list != nullptr) {
        const int dimensions = key.list->dimensions != nullptr ? key.list->dimensions(value) : length;
        if (dimensions != length) refuse_different_dims(key.element, length, dimensions);
        return key.list->read_query(value);
    }
    const AnyVector vector = read_any_vector(key.element, value);
    if (vector.dim != length) refuse_different_dims(key.element, length, vector.dim);
    auto* query = static_cast<float*>(palloc(sizeof(float) * width_of(vector)));
    copy_floats(vector, query);
    return dense_rows(query, 1, width_of(vector));
}

RowView blank_query(ElementType element, uint32 width)
{
    if (!is_list(element)) return dense_rows(static_cast<float*>(palloc0(sizeof(float) * width)), 1, width);
    if (element == ElementType::sparse) return make_sparse_row(0);
    auto* word = static_cast<uint32*>(palloc(sizeof(uint32)));
    pack_text({}, word);
    return one_list_row(word, element == ElementType::text ? 1 : 0);
}

bool prepare_query(Metric metric, const float* query, uint32 dimensions, float* sent)
{
    memcpy(sent, query, sizeof(float) * dimensions);
    if (metric != Metric::cosine) return true;
    const double norm = canonical_norm(query, dimensions);
    if (norm == 0) {
        sent[0] = 1.0F;
        return false;
    }
    for (uint32 i = 0; i < dimensions; ++i) sent[i] = static_cast<float>(query[i] / norm);
    return true;
}

bool prepare_query(Metric metric, const RowView& query, RowView* sent)
{
    *sent = query;
    if (metric != Metric::cosine) return true;
    if (query.offsets != nullptr) {
        if (sparse_norm(view_sparse_row(query)) > 0) return true;
        *sent = make_sparse_row(1);
        const_cast<float*>(sent->weights)[0] = 1.0F;
        return false;
    }
    auto* scaled = static_cast<float*>(palloc(sizeof(float) * query.width));
    sent->values = scaled;
    return prepare_query(metric, query.values, static_cast<uint32>(query.width), scaled);
}

QueryRows make_query_rows(ElementType element, uint32 width, uint32 most_queries)
{
    QueryRows queries = {};
    if (!is_list(element)) {
        const Size bytes = sizeof(float) * width * Size{most_queries};
        queries.values = static_cast<float*>(MemoryContextAllocHuge(CurrentMemoryContext, bytes));
        queries.rows = dense_rows(queries.values, 0, width);
        return queries;
    }
    queries.offsets = static_cast<uint64*>(palloc(sizeof(uint64) * (Size{most_queries} + 1)));
    queries.offsets[0] = 0;
    queries.most_words = 16 * uint64{most_queries};
    queries.words = static_cast<uint32*>(palloc(sizeof(uint32) * queries.most_words));
    queries.rows.offsets = queries.offsets;
    queries.rows.words = queries.words;
    if (has_weights(element)) queries.weights = static_cast<float*>(palloc(sizeof(float) * queries.most_words));
    queries.rows.weights = queries.weights;
    return queries;
}

static void reserve_words(QueryRows* queries, uint64 words)
{
    if (words <= queries->most_words) return;
    queries->most_words = Max(words, 2 * queries->most_words);
    queries->words = static_cast<uint32*>(repalloc_huge(queries->words, sizeof(uint32) * queries->most_words));
    queries->rows.words = queries->words;
    if (queries->weights == nullptr) return;
    queries->weights = static_cast<float*>(repalloc_huge(queries->weights, sizeof(float) * queries->most_words));
    queries->rows.weights = queries->weights;
}

bool put_query(QueryRows* queries, uint32 at, Metric metric, const RowView& query)
{
    if (queries->offsets == nullptr) {
        float* sent = queries->values + uint64{at} * query.width;
        return prepare_query(metric, query.values, static_cast<uint32>(query.width), sent);
    }
    RowView sent;
    const bool ordered = prepare_query(metric, query, &sent);
    const uint64 first = queries->offsets[at];
    const uint64 count = sent.word_count();
    reserve_words(queries, first + count);
    memcpy(queries->words + first, sent.words + sent.offsets[0], sizeof(uint32) * count);
    if (queries->weights != nullptr)
        memcpy(queries->weights + first, sent.weights + sent.offsets[0], sizeof(float) * count);
    queries->offsets[at + 1] = first + count;
    return ordered;
}

}  // namespace pgwarp
