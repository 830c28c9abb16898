// Rows that are lists, in a merge: the arrays of their offsets, words and weights. Words of live rows are copied from
// pages, those of new rows come from the engine or from the logs, and offsets go on where the words before them end.
#include "postgres/merge/merge_run.h"
#include "postgres/storage/array_role.h"
#include "postgres/storage/chunk_reader.h"
#include "postgres/storage/fault_point.h"
#include "postgres/storage/stored_value.h"

namespace pgwarp
{

namespace
{

ChunkReader open_chunks(const MergeRun* merge, const StoredArray* array)
{
    return pgwarp::open_chunks(merge->index, merge->directory, array);
}

// The bytes of the array from `offset` on, `left` of them.
const char* read_merged(ChunkReader* reader, uint64 offset, uint64* left)
{
    if (!has_chunk(*reader, offset)) {
        merge_delay_point();
        report_merge("copying rows", offset, reader->array->shape.bytes());
    }
    const char* bytes = read_chunk(reader, offset, left);
    if (bytes == nullptr) {
        elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(reader->index));
    }
    return bytes;
}

// The lists of the index's arrays, in row order.
struct OldLists {
    const MergeRun* merge;
    ChunkReader offsets;
    uint64 row;  // the next
    OffsetWalk walk;
};

[[noreturn]] void report_wrong_lists(const MergeRun* merge)
{
    report_corruption(merge->index, merge->meta.directory_block, "the offsets of its lists are impossible");
}

uint64 read_offset(OldLists* lists, uint64 row)
{
    uint64 left = 0;
    uint64 offset = 0;
    memcpy(&offset, read_merged(&lists->offsets, row * sizeof(offset), &left), sizeof(offset));
    return offset;
}

OldLists open_lists(const MergeRun* merge)
{
    const StoredArray* offsets = find_array(*merge->directory, *merge->method, ArrayRole::list_offsets);
    const StoredArray* words = find_array(*merge->directory, *merge->method, ArrayRole::list_words);
    if (offsets == nullptr || words == nullptr || offsets->shape.rows != merge->counts.rows + 1 ||
        offsets->shape.bytes() != offsets->shape.rows * sizeof(uint64))
        report_wrong_lists(merge);
    OldLists lists = {merge, open_chunks(merge, offsets), 0, {words->shape.rows}};
    if (read_offset(&lists, 0) != 0) report_wrong_lists(merge);
    return lists;
}

// Goes to the next live list, whose words are those of the walk; false behind the last one.
bool next_live_list(OldLists* lists)
{
    const MergeRun* merge = lists->merge;
    while (lists->row < merge->counts.rows) {
        if (!lists->walk.next(read_offset(lists, lists->row + 1))) report_wrong_lists(merge);
        if (!merge->row_is_dead(lists->row++)) return true;
    }
    if (lists->walk.end != lists->walk.word_count) report_wrong_lists(merge);
    return false;
}

void close_lists(OldLists* lists)
{
    close_chunks(lists->offsets);
}

// The last offset of the index, where the words of all lists end.
uint64 last_offset(const MergeRun* merge)
{
    OldLists lists = open_lists(merge);
    const uint64 last = read_offset(&lists, merge->counts.rows);
    if (last != lists.walk.word_count) report_wrong_lists(merge);
    close_lists(&lists);
    return last;
}

// The offsets of the next generation, as they are written.
struct OffsetSink {
    const MergeRun* merge;
    ArrayWriter* writer;
    uint64 end;        // of the words so far
    bool skips_first;  // the 0 that the engine's offsets begin with
    OffsetWalk walk;   // over the engine's offsets
};

void put_list(OffsetSink* sink, uint64 words)
{
    sink->end += words;
    write_array(sink->writer, &sink->end, sizeof(sink->end));
}

void put_live_lists(const MergeRun* merge, OffsetSink* sink)
{
    OldLists lists = open_lists(merge);
    while (next_live_list(&lists)) put_list(sink, lists.walk.end - lists.walk.begin);
    close_lists(&lists);
}

void put_entry(void* state, const DeltaEntry& entry)
{
    auto* sink = static_cast<OffsetSink*>(state);
    put_list(sink, stored_list_words(sink->merge->meta.shape, entry.row_bytes));
}

void put_built_offsets(void* state, const void* piece, uint64 length)
{
    auto* sink = static_cast<OffsetSink*>(state);
    const auto* offsets = static_cast<const uint64*>(piece);
    for (uint64 i = 0; i < length / sizeof(uint64); ++i) {
        if (!sink->walk.next(offsets[i])) report_wrong(sink->merge, "The offsets of its lists are impossible.");
        if (!sink->skips_first) put_list(sink, sink->walk.end - sink->walk.begin);
        sink->skips_first = false;
    }
}

// The engine's array of a role, with this number of rows unless that is 0, and its own number.
const ArrayShape& require_built(const MergeRun* merge, ArrayRole role, uint64 rows, uint32* number)
{
    const ArrayShape* built = find_built(merge, array_name(*merge->method, role), number);
    if (built == nullptr || (rows > 0 && built->rows != rows)) report_wrong(merge, "An array of lists is missing.");
    return *built;
}

void put_new_offsets(MergeRun* merge, OffsetSink* sink)
{
    if (merge->new_rows() == 0) return;
    if (merge->built == nullptr) return visit_delta_entries(merge, put_entry, sink);
    uint32 number = 0;
    sink->walk = {require_built(merge, ArrayRole::list_words, 0, &number).rows};
    sink->skips_first = true;
    const ArrayShape& offsets = require_built(merge, ArrayRole::list_offsets, merge->new_rows() + 1, &number);
    read_built_array(&merge->build, number, offsets.bytes(), &merge->buffer, put_built_offsets, sink);
}

// Whether the arrays stay where they are and only grow.
bool grows(const MergeRun* merge, const StoredArray* old)
{
    return old != nullptr && merge->kind != MergeKind::compact;
}

ArrayWriter* begin_list_array(MergeRun* merge, const StoredArray* old, const ArrayShape& shape)
{
    return grows(merge, old) ? begin_append(&merge->pages, PageKind::array, merge->next.segment_id, *old,
                                            shape.rows - old->shape.rows)
                             : begin_array(&merge->pages, PageKind::array, merge->next.segment_id, shape);
}

// Writes the offsets; returns the number of words of all lists.
uint64 carry_offsets(MergeRun* merge)
{
    const StoredArray* old = find_array(*merge->directory, *merge->method, ArrayRole::list_offsets);
    const uint64 kept = old == nullptr ? 0 : grows(merge, old) ? merge->counts.rows : merge->old_rows();
    const ArrayShape shape = make_array_shape(array_name(*merge->method, ArrayRole::list_offsets), ArrayType::u64,
                                              kept + merge->new_rows() + 1, 1);
    OffsetSink sink = {merge, begin_list_array(merge, old, shape), 0, false, {}};
    if (grows(merge, old)) {
        sink.end = last_offset(merge);
    } else {
        put_list(&sink, 0);
        if (old != nullptr) put_live_lists(merge, &sink);
    }
    put_new_offsets(merge, &sink);
    add_array(merge, end_array(sink.writer));
    fault_point("merge: array written");
    return sink.end;
}

// Copies the words, or weights, of live lists.
void copy_live_words(MergeRun* merge, const StoredArray& array, ArrayWriter* writer)
{
    const uint64 word_bytes = array_type_bytes(array.shape.type);
    OldLists lists = open_lists(merge);
    if (array.shape.bytes() != lists.walk.word_count * word_bytes) report_wrong_lists(merge);
    ChunkReader words = open_chunks(merge, &array);
    while (next_live_list(&lists)) {
        const uint64 end = lists.walk.end * word_bytes;
        for (uint64 at = lists.walk.begin * word_bytes; at < end;) {
            uint64 left = 0;
            const char* bytes = read_merged(&words, at, &left);
            const uint64 length = Min(left, end - at);
            write_array(writer, bytes, length);
            at += length;
        }
    }
    close_chunks(words);
    close_lists(&lists);
}

void write_words(void* writer, Tid, const RowView& row)
{
    write_array(static_cast<ArrayWriter*>(writer), row.words + row.offsets[0], sizeof(uint32) * row.word_count());
}

void write_weights(void* writer, Tid, const RowView& row)
{
    write_array(static_cast<ArrayWriter*>(writer), row.weights + row.offsets[0], sizeof(float) * row.word_count());
}

// Writes the words, or the weights, of all lists.
void carry_words(MergeRun* merge, ArrayRole role, uint64 all)
{
    const bool weights = role == ArrayRole::list_weights;
    const StoredArray* old = find_array(*merge->directory, *merge->method, role);
    const ArrayShape shape =
        make_array_shape(array_name(*merge->method, role), weights ? ArrayType::f32 : ArrayType::u32, all, 1);
    ArrayWriter* writer = begin_list_array(merge, old, shape);
    if (old != nullptr && !grows(merge, old)) copy_live_words(merge, *old, writer);
    if (merge->new_rows() > 0 && merge->built != nullptr) {
        uint32 number = 0;
        const ArrayShape& built = require_built(merge, role, 0, &number);
        copy_built_array(merge, number, built, writer);
    } else if (merge->new_rows() > 0) {
        visit_delta(merge, weights ? write_weights : write_words, writer);
    }
    add_array(merge, end_array(writer));
    fault_point("merge: array written");
}

}  // namespace

bool is_list_array(const MethodDescription& method, const char* name)
{
    for (const ArrayRole role : {ArrayRole::list_offsets, ArrayRole::list_words, ArrayRole::list_weights}) {
        const char* own = array_name(method, role);
        if (own != nullptr && strcmp(own, name) == 0) return true;
    }
    return false;
}

void carry_list_rows(MergeRun* merge)
{
    const uint64 words = carry_offsets(merge);
    carry_words(merge, ArrayRole::list_words, words);
    if (has_weights(merge->meta.shape.element)) carry_words(merge, ArrayRole::list_weights, words);
}

}  // namespace pgwarp
