// aminsert.
#include "postgres/am/insert.h"

#include "postgres/am/element_type.h"
#include "postgres/am/row_value.h"
#include "postgres/client/delta_push.h"
#include "postgres/merge/merge_worker.h"
#include "postgres/storage/included_tuple.h"

namespace pgwarp
{

namespace
{

// The descriptor of the included columns, kept in the IndexInfo for the statement.
TupleDesc kept_descriptor(Relation index, IndexInfo* info)
{
    if (info->ii_AmCache == nullptr) {
        MemoryContext outer = MemoryContextSwitchTo(info->ii_Context);
        info->ii_AmCache = included_descriptor(index);
        MemoryContextSwitchTo(outer);
    }
    return static_cast<TupleDesc>(info->ii_AmCache);
}

}  // namespace

bool pgwarp_aminsert(Relation index, Datum* values, bool* is_null, ItemPointer tid, Relation, IndexUniqueCheck, bool,
                     IndexInfo* info)
{
    const MetaPage meta = read_metapage(index);
    if (is_null[0]) {
        if (keeps_unplaced(meta)) append_unplaced(index, meta, tid, true, nullptr);
        return false;
    }
    const bool has_included = has_included_columns(index);
    const ListType* list = index_key_type(index).list;
    const StoredRow row = index_stored_value(meta.shape, list, values[0], has_included ? max_included_bytes : 0);
    if (row.bytes != nullptr) {
        uint32 bytes = row.length;
        if (has_included) {
            IndexTuple included = form_included(kept_descriptor(index, info), tid, values, is_null);
            memcpy(row.bytes + bytes, included, IndexTupleSize(included));
            bytes += static_cast<uint32>(IndexTupleSize(included));
            pfree(included);
        }
        const DeltaValue appended = {row.bytes, bytes, row.length};
        const DeltaPlace place = append_delta(index, meta, tid, appended);
        push_inserted_row(index, meta, place, tid, appended);
        pfree(row.bytes);
        if ((place.ordinal + 1) % merge_check_interval == 0) consider_merge(index, read_index_state(index));
    } else if (keeps_unplaced(meta)) {
        append_unplaced(index, meta, tid, false, nullptr);
    }
    return false;
}

}  // namespace pgwarp
