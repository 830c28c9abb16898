#include "postgres/client/row_pieces.h"

namespace pgwarp
{

namespace
{

// Return offsets relative to the first list's words.
const uint64* own_offsets(const RowView& rows)
{
    if (rows.offsets[0] == 0) return rows.offsets;
    auto* offsets = static_cast<uint64*>(palloc(sizeof(uint64) * (rows.count + 1)));
    for (Size i = 0; i <= rows.count; ++i) offsets[i] = rows.offsets[i] - rows.offsets[0];
    return offsets;
}

}  // namespace

int row_pieces(const RowView& rows, RequestPiece pieces[most_row_pieces])
{
    int count = 0;
    const auto add = [pieces, &count](const void* bytes, Size length) {
        pieces[count++] = {bytes, static_cast<uint32>(length)};
    };
    if (rows.attribute_count > 0) add(rows.attributes, sizeof(uint64) * rows.attribute_count * rows.count);
    if (rows.offsets == nullptr) {
        add(rows.values, sizeof(float) * rows.width * rows.count);
        return count;
    }
    add(own_offsets(rows), sizeof(uint64) * (rows.count + 1));
    add(rows.words + rows.offsets[0], sizeof(uint32) * rows.word_count());
    if (rows.weights != nullptr) add(rows.weights + rows.offsets[0], sizeof(float) * rows.word_count());
    return count;
}

RowView copy_rows(const RowView& rows)
{
    const RowBlock block = block_of(rows);
    auto* bytes = static_cast<std::byte*>(MemoryContextAllocHuge(CurrentMemoryContext, block.bytes()));
    write_rows(rows, bytes);
    return view_rows(block, bytes);
}

void describe_queries(const RowView& queries, SearchRequest* request)
{
    const RowBlock block = block_of(queries);
    request->form = block.form;
    request->query_count = block.count;
    request->dimensions = block.width;
}

}  // namespace pgwarp
