#include "postgres/check/check_codes.h"

#include "postgres/am/attribute_code.h"
#include "postgres/storage/unplaced.h"

extern "C" {
#include "utils/lsyscache.h"
}

namespace pgwarp
{

// The sorts are those of unplaced rows, which have addresses and codes too.
struct CodeCheck {
    Relation index;
    AttributeCoder coder;
    UnplacedSort* stored;
    UnplacedSort* of_rows;
    MemoryContext row_context;
};

CodeCheck* begin_code_check(Relation index)
{
    if (filter_column_count(index) == 0) return nullptr;
    auto* check = static_cast<CodeCheck*>(palloc0(sizeof(CodeCheck)));
    check->index = index;
    open_attribute_coder(index, &check->coder);
    const auto count = static_cast<uint32>(check->coder.count);
    check->stored = begin_unplaced_sort(maintenance_work_mem / 2, count, nullptr);
    check->of_rows = begin_unplaced_sort(maintenance_work_mem / 2, count, nullptr);
    check->row_context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp row codes", ALLOCSET_DEFAULT_SIZES);
    return check;
}

void take_stored_codes(CodeCheck* check, Tid tid, const uint64* codes)
{
    add_unplaced(check->stored, {tid, UnplacedKind::null, codes});
}

void take_row_codes(CodeCheck* check, Tid tid, const Datum* values, const bool* nulls)
{
    uint64 codes[most_filter_columns];
    MemoryContext outer = MemoryContextSwitchTo(check->row_context);
    code_attributes(check->coder, values, nulls, codes);
    MemoryContextSwitchTo(outer);
    MemoryContextReset(check->row_context);
    add_unplaced(check->of_rows, {tid, UnplacedKind::null, codes});
}

static void compare_row(const CodeCheck* check, const UnplacedRow& stored, const UnplacedRow& row)
{
    for (int i = 0; i < check->coder.count; ++i) {
        if (stored.attributes[i] == row.attributes[i]) continue;
        const int column = filter_column(check->coder.vector, i);
        ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                        errmsg("column \"%s\" of index \"%s\" has another value for row (%u,%u) than table \"%s\"",
                               NameStr(TupleDescAttr(RelationGetDescr(check->index), column)->attname),
                               RelationGetRelationName(check->index), row.tid.block, row.tid.offset,
                               get_rel_name(check->index->rd_index->indrelid)),
                        errhint("Please REINDEX it.")));
    }
}

void compare_codes(CodeCheck* check)
{
    perform_unplaced_sort(check->stored);
    perform_unplaced_sort(check->of_rows);
    UnplacedRow stored;
    bool more = next_unplaced(check->stored, &stored);
    for (UnplacedRow row; next_unplaced(check->of_rows, &row);) {
        CHECK_FOR_INTERRUPTS();
        while (more && stored.tid < row.tid) more = next_unplaced(check->stored, &stored);
        if (more && stored.tid == row.tid) compare_row(check, stored, row);
    }
}

void end_code_check(CodeCheck* check)
{
    end_unplaced_sort(check->stored);
    end_unplaced_sort(check->of_rows);
}

}  // namespace pgwarp
