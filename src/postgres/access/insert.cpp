#include "postgres/access/insert.h"

#include "postgres/access/row_value.h"
#include "postgres/maintenance/merge_worker.h"
#include "postgres/storage/delta_log.h"

namespace pgwarp
{

// Append one row to a delta log.
bool pgwarp_aminsert(Relation index, Datum* values, bool* is_null, ItemPointer tid, Relation, IndexUniqueCheck, bool,
                     IndexInfo*)
{
    if (is_null[0]) return false;
    const MetaPage meta = read_metapage(index);
    float* vector = static_cast<float*>(palloc(meta.shape.dimensions * sizeof(float)));
    if (index_row_value(index, meta.shape, values[0], vector)) {
        const uint64 ordinal = append_delta(index, meta, tid, vector, meta.shape.dimensions);
        if ((ordinal + 1) % entries_between_thoughts == 0) consider_merge(index);
    }
    pfree(vector);
    return false;
}

}  // namespace pgwarp
