// Walks the lists of an index in row order.
#include "postgres/check/list_structure.h"

#include "postgres/am/methods.h"
#include "postgres/storage/array_role.h"
#include "postgres/storage/chunk_reader.h"
#include "protocol/rows.h"

namespace pgwarp
{

namespace
{

// Copies bytes [offset, offset + length) of the array to `out`. False when the index was changed meanwhile.
bool copy_bytes(ChunkReader* reader, uint64 offset, uint64 length, void* out)
{
    for (uint64 copied = 0; copied < length;) {
        if (!has_chunk(*reader, offset + copied)) CHECK_FOR_INTERRUPTS();
        uint64 left = 0;
        const char* bytes = read_chunk(reader, offset + copied, &left);
        if (bytes == nullptr) return false;
        const uint64 some = Min(length - copied, left);
        memcpy(static_cast<char*>(out) + copied, bytes, some);
        copied += some;
    }
    return true;
}

[[noreturn]] void report_lists(const IndexCheck& check, const char* fault)
{
    report_corruption(check.index, check.meta.directory_block, fault);
}

// The lists of an index, read one after the other.
struct ListWalk {
    const IndexCheck* check;
    ChunkReader offsets;
    ChunkReader words;
    OffsetWalk walk;
    uint32* list;  // words of the last list
};

bool read_offset(ListWalk* lists, uint64 row, uint64* offset)
{
    return copy_bytes(&lists->offsets, row * sizeof(*offset), sizeof(*offset), offset);
}

// Checks the list of a row. False when the index was changed meanwhile.
bool check_list(ListWalk* lists, uint64 row)
{
    uint64 offset = 0;
    if (!read_offset(lists, row + 1, &offset)) return false;
    if (!lists->walk.next(offset)) report_lists(*lists->check, "the offsets of its lists are impossible");
    const uint64 count = offset - lists->walk.begin;
    if (count > max_list_words) report_lists(*lists->check, "a list has too many words");
    if (!copy_bytes(&lists->words, lists->walk.begin * sizeof(uint32), count * sizeof(uint32), lists->list))
        return false;
    const ElementType element = lists->check->meta.shape.element;
    const char* fault = words_fault(element, {lists->list, static_cast<size_t>(count)});
    if (fault != nullptr) report_lists(*lists->check, fault);
    return true;
}

ListWalk open_lists(const IndexCheck& check)
{
    const Directory& directory = *check.directory;
    const MethodDescription& method = access_method_of(check.index);
    const StoredArray* offsets = find_array(directory, method, ArrayRole::list_offsets);
    const StoredArray* words = find_array(directory, method, ArrayRole::list_words);
    if (offsets == nullptr || words == nullptr || offsets->shape.bytes() != (directory.rows + 1) * sizeof(uint64)) {
        report_lists(check, "the index lacks its lists");
    }
    auto* list = static_cast<uint32*>(palloc(sizeof(uint32) * max_list_words));
    return {&check,
            open_chunks(check.index, check.directory, offsets),
            open_chunks(check.index, check.directory, words),
            {words->shape.rows},
            list};
}

void close_lists(const ListWalk& lists)
{
    close_chunks(lists.offsets);
    close_chunks(lists.words);
    pfree(lists.list);
}

}  // namespace

bool check_lists(const IndexCheck& check)
{
    if (!has_own_words(check.meta.shape.element) || check.directory->rows == 0) return true;
    ListWalk lists = open_lists(check);
    uint64 offset = 0;
    bool same = read_offset(&lists, 0, &offset);
    if (same && offset != 0) report_lists(check, "the first list does not begin at the first word");
    for (uint64 row = 0; row < check.directory->rows && same; ++row) same = check_list(&lists, row);
    if (same && lists.walk.end != lists.walk.word_count) {
        report_lists(check, "the offsets of its lists are impossible");
    }
    close_lists(lists);
    return same;
}

}  // namespace pgwarp
