// Forms, reads and checks included tuples.
#include "postgres/storage/included_tuple.h"

#include "postgres/storage/array_stream.h"
#include "postgres/storage/checksum.h"

namespace pgwarp
{

namespace
{

// The checksum of a tuple, whose own field counts as zero.
uint32 included_crc(const char* bytes, uint64 length, Tid tid)
{
    IndexTupleData header;
    memcpy(&header, bytes, sizeof(header));
    ItemPointerSet(&header.t_tid, tid.block, tid.offset);
    pg_crc32c crc;
    INIT_CRC32C(crc);
    COMP_CRC32C(crc, &header, sizeof(header));
    COMP_CRC32C(crc, bytes + sizeof(header), length - sizeof(header));
    FIN_CRC32C(crc);
    return crc;
}

// Whether the index has another generation by now, so that pages of this one may have other content.
bool is_superseded(Relation index, const PlacedSegment& segment)
{
    return read_metapage(index).generation != segment.generation;
}

// The position of a row's tuple in the array; false when the index has another generation by now.
bool find_row(Relation index, const PlacedSegment& segment, uint64 row, uint64* at, uint64* length)
{
    const ArrayShape& shape = segment.included.shape;
    if (segment.included_at.shape.rows == 0) {
        *at = row * shape.width;
        *length = shape.width;
        return true;
    }
    uint64 bounds[2] = {0, shape.bytes()};
    const uint64 count = row + 1 < segment.rows ? 2 : 1;
    if (read_array_bytes(index, segment, segment.included_at, row * sizeof(uint64), count * sizeof(uint64), bounds) !=
        ReadResult::done) {
        return false;
    }
    if (bounds[0] >= bounds[1] || bounds[1] > shape.bytes() || bounds[1] - bounds[0] > max_included_bytes) {
        if (is_superseded(index, segment)) return false;
        report_corruption(index, array_page_block(segment.included_at, row * sizeof(uint64) / page_capacity),
                          "an included tuple has an impossible place");
    }
    *at = bounds[0];
    *length = bounds[1] - bounds[0];
    return true;
}

}  // namespace

bool has_included_columns(Relation index)
{
    return IndexRelationGetNumberOfAttributes(index) > IndexRelationGetNumberOfKeyAttributes(index);
}

TupleDesc included_descriptor(Relation index)
{
    const int keys = IndexRelationGetNumberOfKeyAttributes(index);
    const int columns = IndexRelationGetNumberOfAttributes(index) - keys;
    TupleDesc included = CreateTemplateTupleDesc(columns);
    for (int i = 0; i < columns; ++i) {
        TupleDescCopyEntry(included, static_cast<AttrNumber>(i + 1), RelationGetDescr(index),
                           static_cast<AttrNumber>(keys + i + 1));
    }
    return included;
}

IndexTuple form_included(TupleDesc included, ItemPointer tid, const Datum* values, const bool* nulls)
{
    IndexTuple tuple = index_form_tuple(included, const_cast<Datum*>(values), const_cast<bool*>(nulls));
    if (IndexTupleSize(tuple) > max_included_bytes) {
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("included columns require %zu bytes, maximum size is %u",
                               static_cast<size_t>(IndexTupleSize(tuple)), max_included_bytes)));
    }
    const auto* bytes = reinterpret_cast<const char*>(tuple);
    const Tid address = {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0};
    const uint32 crc = included_crc(bytes, IndexTupleSize(tuple), address);
    memset(&tuple->t_tid, 0, sizeof(tuple->t_tid));
    memcpy(&tuple->t_tid, &crc, sizeof(crc));
    return tuple;
}

bool included_is_intact(const char* bytes, uint64 length, Tid tid)
{
    const auto* tuple = reinterpret_cast<const IndexTupleData*>(bytes);
    if (length < sizeof(IndexTupleData) || IndexTupleSize(tuple) != length) return false;
    uint32 crc;
    memcpy(&crc, &tuple->t_tid, sizeof(crc));
    return crc == included_crc(bytes, length, tid);
}

bool read_included_row(Relation index, const PlacedSegment& segment, uint64 row, Tid tid, char* out)
{
    if (row >= segment.rows) {
        elog(ERROR, "index \"%s\" has no row " UINT64_FORMAT, RelationGetRelationName(index), row);
    }
    uint64 at = 0;
    uint64 length = 0;
    if (!find_row(index, segment, row, &at, &length)) return false;
    if (read_array_bytes(index, segment, segment.included, at, length, out) != ReadResult::done) return false;
    if (!included_is_intact(out, length, tid)) {
        if (is_superseded(index, segment)) return false;
        report_corruption(index, array_page_block(segment.included, at / page_capacity),
                          "the checksum of an included tuple does not match");
    }
    return true;
}

bool read_included_entry(Relation index, const MetaPage& meta, uint32 log, uint64 ordinal, Tid tid, char* out)
{
    if (ordinal < meta.logs[log].start) return false;
    DeltaReader* reader = begin_delta_read(index, meta, log, ordinal, ordinal + 1);
    DeltaEntry entry;
    RowView row;
    const bool found = next_delta_row(reader, &entry, &row);
    uint32 length = 0;
    const char* included = found ? delta_included(reader, &length) : nullptr;
    if (found && !included_is_intact(included, length, tid)) {
        report_corruption(index, meta.logs[log].head, "the checksum of an included tuple of its log does not match");
    }
    if (found) memcpy(out, included, length);
    return end_delta_read(reader) == ReadResult::done && found;
}

}  // namespace pgwarp
