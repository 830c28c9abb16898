// pgwarp_index_info(regclass): the method, options, contents and measured recall of an index.
#include <cinttypes>

#include "postgres/am/index_columns.h"
#include "postgres/am/index_options.h"
#include "postgres/am/method_settings.h"
#include "postgres/am/owned_index.h"
#include "postgres/client/index_state.h"
#include "postgres/fmgr_cpp.h"
#include "postgres/merge/merge.h"
#include "postgres/storage/tombstones.h"
#include "protocol/calibration.h"
#include "protocol/standing_out.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/acl.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
}

namespace pgwarp
{

namespace
{

Datum jsonb_of(const char* text)
{
    return DirectFunctionCall1(jsonb_in, CStringGetDatum(text));
}

// Appends an option's value as CREATE INDEX spells it: a word or a number.
void append_option_value(StringInfo out, const MethodDescription& method, const Parameter& parameter)
{
    for (const ValueDescription& option : method.options) {
        if (strcmp(option.name, parameter.name) != 0) continue;
        if (option.kind == ValueKind::choice) {
            escape_json(out, option.choices[parameter.value - option.first_choice]);
            return;
        }
        if (option.kind == ValueKind::boolean) {
            appendStringInfoString(out, parameter.value != 0 ? "true" : "false");
            return;
        }
        if (option.kind == ValueKind::millionths) {
            appendStringInfo(out, "%g", static_cast<double>(parameter.value) / 1e6);
            return;
        }
    }
    appendStringInfo(out, INT64_FORMAT, parameter.value);
}

// Begins the next member of a jsonb object whose text begins with a brace.
void append_name(StringInfo out, const char* name)
{
    if (out->len > 1) appendStringInfoString(out, ", ");
    escape_json(out, name);
    appendStringInfoString(out, ": ");
}

bool tells_measurement(const char* option)
{
    return strcmp(option, option_standing_out) == 0 || strcmp(option, option_standing_within) == 0;
}

// "filter_columns": ["tenant", "price"], where there are any.
void append_filter_columns(StringInfo out, Relation index)
{
    const int count = filter_column_count(index);
    if (count == 0) return;
    append_name(out, "filter_columns");
    const int vector = vector_column(index);
    for (int i = 0; i < count; ++i) {
        appendStringInfoString(out, i == 0 ? "[" : ", ");
        escape_json(out, NameStr(TupleDescAttr(RelationGetDescr(index), filter_column(vector, i))->attname));
    }
    appendStringInfoChar(out, ']');
}

// {"lists": 316, "codes": "pq", ...}; "recall" when the index has that option; "unplaced_rows": their number, if there
// are any, or null when the index's format has no room for such rows.
Datum options_json(Relation index, const MethodDescription& method, const IndexState& state, uint64 unplaced)
{
    const double recall = index_recall(index);
    const ParameterList& options = state.options;
    StringInfoData out;
    initStringInfo(&out);
    appendStringInfoChar(&out, '{');
    for (uint32 i = 0; i < options.count; ++i) {
        if (tells_measurement(options.items[i].name)) continue;
        append_name(&out, options.items[i].name);
        append_option_value(&out, method, options.items[i]);
    }
    if (recall > 0) {
        append_name(&out, "recall");
        appendStringInfo(&out, "%g", recall);
    }
    append_filter_columns(&out, index);
    if (!keeps_unplaced(state.meta)) {
        append_name(&out, "unplaced_rows");
        appendStringInfoString(&out, "null");
    } else if (unplaced > 0) {
        append_name(&out, "unplaced_rows");
        appendStringInfo(&out, UINT64_FORMAT, unplaced);
    }
    appendStringInfoChar(&out, '}');
    return jsonb_of(out.data);
}

void append_recall(StringInfo out, float recall)
{
    if (recall < 0) {
        appendStringInfoString(out, "null");
    } else {
        appendStringInfo(out, "%.4f", recall);
    }
}

// Of an index whose recall is that of rows that stand out: the typical distance within which they do, and the number of
// sampled rows that had such others.
void append_standing_out(StringInfo out, const ParameterList& options)
{
    const int64 within = options.get(option_standing_within, -1);
    if (within < 0) return;
    appendStringInfo(
        out, ", \"recall_of\": \"rows that stand out\", \"standing_out_within\": %.3f, \"queries\": " INT64_FORMAT,
        static_cast<double>(within) / 1e6, static_cast<int64>(options.get(option_standing_out, 0)));
}

// {"sample": 1000, "changed_rows": 0, "renewed_by": "merge", "curve": [{"effort": 1, "recall": {"1": 0.9, ...}}, ...]}
Datum calibration_json(const MethodDescription& method, bool complete, const Directory& directory)
{
    const Calibration& calibration = directory.calibration;
    StringInfoData out;
    initStringInfo(&out);
    appendStringInfo(&out, "{\"sample\": %u, \"changed_rows\": %u, \"renewed_by\": ", calibration.sample,
                     directory.changed_rows);
    const char* const renewal = can_calibrate(method, directory) ? "\"merge\"" : "\"REINDEX\"";
    appendStringInfoString(&out, complete || calibration.count == 0 ? "null" : renewal);
    append_standing_out(&out, directory.options);
    appendStringInfoString(&out, ", \"curve\": [");
    for (uint32 i = 0; i < calibration.count; ++i) {
        const CalibrationPoint& point = calibration.points[i];
        appendStringInfo(&out, "%s{\"effort\": " INT64_FORMAT ", \"recall\": {", i > 0 ? ", " : "", point.effort);
        for (size_t k = 0; k < lengthof(Calibration::ks); ++k) {
            appendStringInfo(&out, "%s\"%u\": ", k > 0 ? ", " : "", Calibration::ks[k]);
            append_recall(&out, point.recall[k]);
        }
        appendStringInfoString(&out, "}}");
    }
    appendStringInfoString(&out, "]}");
    return jsonb_of(out.data);
}

// {"compares": "centroids and codes", "answer": "merge"}: the values that merges compare to detect drift, and the
// statement that trains the quantizers again.
Datum drift_json(const Directory& directory, const char* compared)
{
    return jsonb_of(psprintf("{\"compares\": \"%s\", \"answer\": \"%s\"}", compared,
                             keeps_vectors(directory) ? "merge" : "REINDEX"));
}

// {"1": 0.999, "10": 0.99, ...}: the best recall measured for each k; 1 for a complete index, which has no
// calibration.
Datum attainable_json(bool complete, const Calibration& calibration)
{
    StringInfoData out;
    initStringInfo(&out);
    appendStringInfoChar(&out, '{');
    for (size_t k = 0; k < lengthof(Calibration::ks); ++k) {
        float best = complete ? 1.0F : -1.0F;
        for (uint32 i = 0; i < calibration.count; ++i) best = Max(best, calibration.points[i].recall[k]);
        appendStringInfo(&out, "%s\"%u\": ", k > 0 ? ", " : "", Calibration::ks[k]);
        append_recall(&out, best);
    }
    appendStringInfoChar(&out, '}');
    return jsonb_of(out.data);
}

// Raises an error unless the user may read the table.
void check_may_read(Relation index)
{
    const Oid table = index->rd_index->indrelid;
    const AclResult result = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);
    if (result != ACLCHECK_OK) aclcheck_error(result, OBJECT_TABLE, get_rel_name(table));
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_index_info)
{
    using namespace pgwarp;
    TupleDesc description;
    if (get_call_result_type(fcinfo, nullptr, &description) != TYPEFUNC_COMPOSITE) {
        elog(ERROR, "return type must be a row type");
    }
    Relation index = relation_open(PG_GETARG_OID(0), AccessShareLock);
    const MethodDescription& method = access_method_of(index);
    check_may_read(index);
    check_is_built(index);
    DirectoryState state = read_directory_state(index);
    RowCounts placed;
    RowCounts unplaced;
    while (count_rows(index, state.meta, *state.directory, nullptr, &placed) == ReadResult::recycled ||
           count_unplaced_rows(index, state.meta, *state.directory, PG_UINT64_MAX, &unplaced) == ReadResult::recycled) {
        CHECK_FOR_INTERRUPTS();
        state = read_directory_state(index);
    }
    const RowCounts all = placed + unplaced;
    const bool complete = method.complete.has(state.meta.shape.element);
    Datum values[10];
    bool nulls[10] = {};
    values[0] = CStringGetTextDatum(method.name);
    values[1] = Int64GetDatum(static_cast<int64>(all.rows - all.dead_rows));
    values[2] = Int64GetDatum(static_cast<int64>(all.delta));
    values[3] = Int64GetDatum(static_cast<int64>(all.dead_rows + all.dead_delta));
    values[4] = Int64GetDatum(static_cast<int64>(RelationGetNumberOfBlocks(index)) * BLCKSZ);
    values[5] = CStringGetTextDatum(psprintf("%016" PRIx64, static_cast<uint64_t>(state.meta.generation)));
    // As in pg_stats, the number of NULLs is not for users from whom row security hides rows.
    const bool hides_rows = check_enable_rls(index->rd_index->indrelid, InvalidOid, true) == RLS_ENABLED;
    values[6] = options_json(index, method, state, hides_rows ? 0 : unplaced.live());
    values[7] = calibration_json(method, complete, *state.directory);
    values[8] = attainable_json(complete, state.calibration);
    // Nobody has measured how many rows searches miss that end early.
    nulls[8] = is_complete(index) && !is_complete(index, method_settings(method, state.meta.shape.element));
    const char* compared = compared_for_drift(method, *state.directory);
    nulls[9] = compared == nullptr;
    values[9] = compared != nullptr ? drift_json(*state.directory, compared) : Datum{0};
    HeapTuple tuple = heap_form_tuple(BlessTupleDesc(description), values, nulls);
    relation_close(index, AccessShareLock);
    PG_RETURN_DATUM(HeapTupleGetDatum(tuple));
}
