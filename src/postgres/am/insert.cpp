// aminsert.
#include "postgres/am/insert.h"

#include "postgres/am/attribute_code.h"
#include "postgres/am/element_type.h"
#include "postgres/am/row_norms.h"
#include "postgres/am/row_value.h"
#include "postgres/client/delta_push.h"
#include "postgres/merge/merge_worker.h"
#include "postgres/storage/included_tuple.h"

namespace pgwarp
{

namespace
{

// What inserts know of the index, kept in the IndexInfo for the statement.
struct InsertedColumns {
    AttributeCoder coder;
    TupleDesc included;  // null without included columns
    int keys;
};

const InsertedColumns& inserted_columns(Relation index, IndexInfo* info)
{
    if (info->ii_AmCache == nullptr) {
        MemoryContext outer = MemoryContextSwitchTo(info->ii_Context);
        auto* made = static_cast<InsertedColumns*>(palloc0(sizeof(InsertedColumns)));
        open_attribute_coder(index, &made->coder);
        if (has_included_columns(index)) made->included = included_descriptor(index);
        made->keys = IndexRelationGetNumberOfKeyAttributes(index);
        info->ii_AmCache = made;
        MemoryContextSwitchTo(outer);
    }
    return *static_cast<InsertedColumns*>(info->ii_AmCache);
}

// Keeps the norm of a row that is about to be appended. Few rows widen the range.
void keep_norm(Relation index, const MetaPage& meta, Datum value)
{
    const NormRange norms = range_of_row(meta.shape, value);
    const NormRange joined = join_ranges(meta.norms, norms);
    if (joined.least != meta.norms.least || joined.greatest != meta.norms.greatest) widen_norms(index, norms);
}

// Copies bytes behind those of the row; returns their number.
uint32 append_bytes(const StoredRow& row, uint32 at, const void* bytes, Size count)
{
    memcpy(row.bytes + at, bytes, count);
    return static_cast<uint32>(count);
}

}  // namespace

bool pgwarp_aminsert(Relation index, Datum* values, bool* is_null, ItemPointer tid, Relation, IndexUniqueCheck, bool,
                     IndexInfo* info)
{
    const MetaPage meta = read_metapage(index);
    const InsertedColumns& columns = inserted_columns(index, info);
    const int vector = columns.coder.vector;
    uint64 attributes[most_filter_columns];
    code_attributes(columns.coder, values, is_null, attributes);
    if (is_null[vector]) {
        if (keeps_unplaced(meta)) append_unplaced(index, meta, tid, true, attributes);
        return false;
    }
    const KeyType key = index_key_type(index);
    const Size attribute_bytes = sizeof(uint64) * static_cast<Size>(columns.coder.count);
    const Size room = attribute_bytes + (columns.included != nullptr ? max_included_bytes : 0);
    const StoredRow row = index_stored_value(meta.shape, key.list, values[vector], room);
    if (row.bytes != nullptr) {
        if (keeps_norms(key, meta.shape)) keep_norm(index, meta, values[vector]);
        uint32 bytes = row.length + append_bytes(row, row.length, attributes, attribute_bytes);
        if (columns.included != nullptr) {
            IndexTuple included = form_included(columns.included, tid, values + columns.keys, is_null + columns.keys);
            bytes += append_bytes(row, bytes, included, IndexTupleSize(included));
            pfree(included);
        }
        const DeltaValue appended = {row.bytes, bytes, row.length};
        const DeltaPlace place = append_delta(index, meta, tid, appended);
        push_inserted_row(index, meta, place, tid, appended);
        pfree(row.bytes);
        if ((place.ordinal + 1) % merge_check_interval == 0) consider_merge(index, read_index_state(index));
    } else if (keeps_unplaced(meta)) {
        append_unplaced(index, meta, tid, false, attributes);
    }
    return false;
}

}  // namespace pgwarp
