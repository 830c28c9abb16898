// aminsert.
#include "postgres/am/insert.h"

#include "postgres/am/row_value.h"
#include "postgres/client/delta_push.h"
#include "postgres/merge/merge_worker.h"
#include "postgres/storage/included_tuple.h"
#include "postgres/storage/stored_value.h"

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
    const uint32 vector_bytes = stored_value_bytes(meta.shape);
    const bool has_included = has_included_columns(index);
    char* value = static_cast<char*>(palloc(most_stored_bytes(meta.shape) + (has_included ? max_included_bytes : 0)));
    if (index_stored_value(meta.shape, values[0], value)) {
        uint32 bytes = vector_bytes;
        if (has_included) {
            IndexTuple included = form_included(kept_descriptor(index, info), tid, values, is_null);
            memcpy(value + bytes, included, IndexTupleSize(included));
            bytes += static_cast<uint32>(IndexTupleSize(included));
            pfree(included);
        }
        const DeltaValue appended = {value, bytes, vector_bytes};
        const DeltaPlace place = append_delta(index, meta, tid, appended);
        push_inserted_row(index, meta, place, tid, appended);
        if ((place.ordinal + 1) % merge_check_interval == 0) consider_merge(index, read_index_state(index));
    } else if (keeps_unplaced(meta)) {
        append_unplaced(index, meta, tid, false, nullptr);
    }
    pfree(value);
    return false;
}

}  // namespace pgwarp
