#include "postgres/client/row_batch.h"

namespace pgwarp
{

namespace
{

template <class Element>
Element* allocate(uint64 count)
{
    return static_cast<Element*>(palloc(sizeof(Element) * Max(uint64{1}, count)));
}

template <class Element>
void copy_elements(Element* to, const Element* from, uint64 count)
{
    if (count > 0) memcpy(to, from, sizeof(Element) * count);
}

template <class Element>
void free_elements(Element* elements)
{
    if (elements != nullptr) pfree(elements);
}

}  // namespace

RowBatch* make_row_batch(const IndexShape& shape, uint32 most_rows, uint64 most_bytes)
{
    auto* batch = static_cast<RowBatch*>(palloc0(sizeof(RowBatch)));
    const bool dense = !is_list(shape.element);
    const uint64 value_bytes = dense ? sizeof(float) * shape.dimensions : sizeof(uint64);
    const uint64 row_bytes = sizeof(Tid) + sizeof(uint64) * shape.attribute_count + value_bytes;
    // Half of the bytes are reserved for the words of lists.
    const uint64 rows = (dense ? most_bytes : most_bytes / 2) / row_bytes;
    batch->most_rows = static_cast<uint32>(Max(uint64{1}, Min(uint64{most_rows}, rows)));
    batch->tids = allocate<Tid>(batch->most_rows);
    batch->rows.attribute_count = shape.attribute_count;
    if (shape.attribute_count > 0) batch->attributes = allocate<uint64>(shape.attribute_count * batch->most_rows);
    batch->rows.attributes = batch->attributes;
    if (dense) {
        batch->values = allocate<float>(uint64{shape.dimensions} * batch->most_rows);
        batch->rows.width = shape.dimensions;
        batch->rows.values = batch->values;
        return batch;
    }
    const bool weighted = has_weights(shape.element);
    batch->most_words = Max(uint64{max_list_words}, most_bytes / 2 / (weighted ? 8 : 4));
    batch->offsets = allocate<uint64>(uint64{batch->most_rows} + 1);
    batch->offsets[0] = 0;
    batch->words = allocate<uint32>(batch->most_words);
    if (weighted) batch->weights = allocate<float>(batch->most_words);
    batch->rows.offsets = batch->offsets;
    batch->rows.words = batch->words;
    batch->rows.weights = batch->weights;
    return batch;
}

bool has_room(const RowBatch* batch, const RowView& row)
{
    if (batch->rows.count == batch->most_rows) return false;
    return batch->offsets == nullptr || batch->rows.word_count() + row.word_count() <= batch->most_words;
}

void add_row(RowBatch* batch, Tid tid, const RowView& row)
{
    const Size at = batch->rows.count++;
    const Size columns = batch->rows.attribute_count;
    batch->tids[at] = tid;
    if (columns > 0) copy_elements(batch->attributes + at * columns, row.attributes, columns);
    if (batch->offsets == nullptr) {
        copy_elements(batch->values + at * row.width, row.values, row.width);
        return;
    }
    const uint64 first = batch->offsets[at];
    const uint64 words = row.word_count();
    copy_elements(batch->words + first, row.words + row.offsets[0], words);
    if (batch->weights != nullptr) copy_elements(batch->weights + first, row.weights + row.offsets[0], words);
    batch->offsets[at + 1] = first + words;
}

void clear_row_batch(RowBatch* batch)
{
    batch->rows.count = 0;
}

void free_row_batch(RowBatch* batch)
{
    free_elements(batch->tids);
    free_elements(batch->attributes);
    free_elements(batch->values);
    free_elements(batch->offsets);
    free_elements(batch->words);
    free_elements(batch->weights);
    pfree(batch);
}

}  // namespace pgwarp
