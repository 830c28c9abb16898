// SQL functions about the engine: pgwarp_status_engine(), pgwarp_prewarm(regclass), pgwarp_release(regclass).
#include "postgres/am/methods.h"
#include "postgres/am/owned_index.h"
#include "postgres/client/loader.h"
#include "postgres/client/remembered_indexes.h"
#include "postgres/client/request.h"
#include "postgres/client/shared_slot.h"
#include "postgres/fmgr_cpp.h"
#include "postgres/functions/engine_status.h"
#include "postgres/scan/query_value.h"
#include "postgres/settings.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#if PG_VERSION_NUM >= 160000
#include "utils/relfilenumbermap.h"
#else
#include "utils/relfilenodemap.h"
#endif
#include "utils/rls.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
}

namespace pgwarp
{

StatusReply* fetch_status()
{
    if (!launcher_is_running()) return nullptr;
    const EngineReply reply = engine_request(MessageType::status, nullptr, 0, true);
    if (reply.payload_bytes < sizeof(StatusReply)) raise_engine_lost();
    auto* status = static_cast<StatusReply*>(palloc(reply.payload_bytes));
    memcpy(status, reply.payload, reply.payload_bytes);
    status->device[sizeof(status->device) - 1] = '\0';
    const uint32 most = static_cast<uint32>((reply.payload_bytes - sizeof(StatusReply)) / sizeof(MirrorStatus));
    status->mirror_count = Min(status->mirror_count, most);
    return status;
}

namespace
{

constexpr int engine_columns = 10;
constexpr int status_columns = 33;
constexpr int gpu_column = 15;  // null for the CPU
constexpr int first_count_column = 18;
constexpr int count_columns = 3;       // of rows
constexpr int delta_cost_column = 21;  // null if unknown
constexpr int mean_columns = 6;        // the last columns, null until the first search

MirrorStatus* mirrors_of(StatusReply* status)
{
    return reinterpret_cast<MirrorStatus*>(status + 1);
}

Datum milliseconds_interval(uint64 milliseconds)
{
    auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
    interval->time = static_cast<TimeOffset>(milliseconds) * 1000;
    return IntervalPGetDatum(interval);
}

Datum count_datum(uint64 count)
{
    return Int64GetDatum(static_cast<int64>(Min(count, uint64{PG_INT64_MAX})));
}

void fill_engine(const StatusReply& status, Datum* values)
{
    values[0] = Int32GetDatum(status.process_id);
    values[1] = CStringGetTextDatum(status.device);
    values[2] = count_datum(status.memory_used);
    values[3] = count_datum(status.memory_allowed);
    values[4] = count_datum(status.host_memory_used);
    values[5] = count_datum(status.host_memory_allowed);
    values[6] = milliseconds_interval(status.uptime_ms);
    values[7] = Int32GetDatum(static_cast<int32>(status.connections));
    values[8] = Int32GetDatum(static_cast<int32>(status.builds));
    values[9] = Int32GetDatum(static_cast<int32>(engine_start_count()));
}

const char* method_name(Method method)
{
    const MethodDescription* found = find_description(method);
    return found != nullptr ? found->name : "unknown";
}

void fill_mirror(const MirrorStatus& mirror, Datum* values)
{
    values[10] = ObjectIdGetDatum(mirror.key.database);
    values[11] = ObjectIdGetDatum(mirror.key.tablespace);
    values[12] = ObjectIdGetDatum(mirror.key.relation);
    values[13] = CStringGetTextDatum(method_name(mirror.method));
    values[14] = CStringGetTextDatum(mirror.on_cuda ? "cuda" : "cpu");
    values[gpu_column] = Int32GetDatum(mirror.gpu);
    values[16] = CStringGetTextDatum(!mirror.on_cuda ? "host" : mirror.split ? "split" : "device");
    values[17] = BoolGetDatum(mirror.loading != 0);
    values[18] = count_datum(mirror.rows);
    values[19] = count_datum(mirror.delta_rows);
    values[20] = count_datum(mirror.part_rows);
    values[delta_cost_column] = Float8GetDatum(mirror.delta_cost);
    values[22] = count_datum(mirror.dead_rows);
    values[23] = count_datum(mirror.bytes);
    values[24] = count_datum(mirror.device_bytes);
    values[25] = count_datum(mirror.searches);
    values[26] = count_datum(mirror.batches);
    const double searches = static_cast<double>(Max(mirror.searches, uint64{1}));
    const double batches = static_cast<double>(Max(mirror.batches, uint64{1}));
    values[27] = Float8GetDatum(static_cast<double>(mirror.searches) / batches);
    values[28] = count_datum(mirror.widest_batch);
    values[29] = Float8GetDatum(static_cast<double>(mirror.engine_ns) / batches / 1e6);
    values[30] = Float8GetDatum(static_cast<double>(mirror.queue_ns) / searches / 1e6);
    values[31] = Float8GetDatum(static_cast<double>(mirror.engine_ns) / searches / 1e6);
    values[32] = Float8GetDatum(static_cast<double>(mirror.answer_ns) / searches / 1e6);
}

// Returns the table of an index's file; InvalidOid when there is none now.
Oid table_of_file(const MirrorKey& key)
{
#if PG_VERSION_NUM >= 160000
    const Oid index = RelidByRelfilenumber(key.tablespace, key.relation);
#else
    const Oid index = RelidByRelfilenode(key.tablespace, key.relation);
#endif
    return OidIsValid(index) ? IndexGetRelation(index, true) : InvalidOid;
}

bool may_see_all()
{
    return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

// Whether the user may see an index: monitors may see all; other users those of tables in this database that they may
// read or own.
bool may_see_index(const MirrorKey& key)
{
    if (may_see_all()) return true;
    if (key.database != MyDatabaseId) return false;
    const Oid table = table_of_file(key);
    if (!OidIsValid(table)) return false;
    return pg_class_aclcheck(table, GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
           pg_attribute_aclcheck_all(table, GetUserId(), ACL_SELECT, ACLMASK_ANY) == ACLCHECK_OK;
}

// Whether row security hides rows of an index from the user. The numbers of its rows are hidden too, as in pg_stats:
// beside pg_class.reltuples they would tell how many NULLs there are.
bool hides_rows(const MirrorKey& key)
{
    return !may_see_all() && check_enable_rls(table_of_file(key), InvalidOid, true) == RLS_ENABLED;
}

constexpr int most_load_tries = 3;

// Returns the resident mirror of the index; null if there is none.
const MirrorStatus* find_mirror(StatusReply* status, const MirrorKey& key)
{
    if (status == nullptr) return nullptr;
    for (uint32 i = 0; i < status->mirror_count; ++i) {
        if (mirrors_of(status)[i].key == key) return &mirrors_of(status)[i];
    }
    return nullptr;
}

// Brings the mirror up to date, and returns its bytes.
uint64 load_mirror(Relation index, const IndexState& state)
{
    // It sends a search, because the reply tells which data the mirror lacks.
    const IndexShape& shape = state.meta.shape;
    RowView query;
    prepare_query(static_cast<Metric>(shape.metric), blank_query(shape.element, shape.dimensions), &query);
    SearchRequest request;
    memset(static_cast<void*>(&request), 0, sizeof(request));
    request.k = 1;
    request.load_wait_ms = static_cast<uint32>(setting_load_wait_ms);
    if (state.calibration.count > 0) request.effort = state.calibration.points[0].effort;
    // If the engine ended in between, its mirrors are gone.
    const MirrorStatus* mirror = nullptr;
    for (int tries = 0; mirror == nullptr && tries < most_load_tries; ++tries) {
        const uint32 starts = engine_start_count();
        engine_search(index, state, &request, query);
        StatusReply* status = fetch_status();
        mirror = find_mirror(status, request.key);
        if (status != nullptr && engine_start_count() == starts) break;
    }
    return mirror != nullptr ? mirror->bytes : 0;
}

}  // namespace

}  // namespace pgwarp

// Returns one row for each resident index that the user may see; one row without an index when there is none; all null
// when no engine runs.
PGWARP_FUNCTION(pgwarp_status_engine)
{
    using namespace pgwarp;
    InitMaterializedSRF(fcinfo, 0);
    auto* out = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    if (out->setDesc->natts != status_columns) elog(ERROR, "pgwarp_status_engine() has another row type");
    Datum values[status_columns] = {};
    bool nulls[status_columns];
    memset(nulls, true, sizeof(nulls));
    StatusReply* status = fetch_status();
    if (status != nullptr) {
        fill_engine(*status, values);
        memset(nulls, false, engine_columns);
    }
    uint32 shown = 0;
    for (uint32 i = 0; status != nullptr && i < status->mirror_count; ++i) {
        const MirrorStatus& mirror = mirrors_of(status)[i];
        if (!may_see_index(mirror.key)) continue;
        fill_mirror(mirror, values);
        memset(nulls, false, sizeof(nulls));
        memset(nulls + first_count_column, hides_rows(mirror.key), count_columns);
        nulls[gpu_column] = mirror.gpu < 0;
        nulls[delta_cost_column] = mirror.delta_cost < 0;
        memset(nulls + status_columns - mean_columns, mirror.searches == 0, mean_columns);
        tuplestore_putvalues(out->setResult, out->setDesc, values, nulls);
        ++shown;
    }
    if (shown == 0) tuplestore_putvalues(out->setResult, out->setDesc, values, nulls);
    return static_cast<Datum>(0);
}

PGWARP_FUNCTION(pgwarp_prewarm)
{
    using namespace pgwarp;
    Relation index = open_owned_index(PG_GETARG_OID(0), AccessShareLock);
    const uint64 bytes = load_mirror(index, read_index_state(index));
    relation_close(index, AccessShareLock);
    PG_RETURN_INT64(static_cast<int64>(bytes));
}

// Returns true if the index was resident.
PGWARP_FUNCTION(pgwarp_release)
{
    using namespace pgwarp;
    Relation index = open_owned_index(PG_GETARG_OID(0), AccessShareLock);
    const MirrorRequest request = {mirror_key(index, read_metapage(index))};
    forget_index(MyDatabaseId, RelationGetRelid(index));
    const bool resident = find_mirror(fetch_status(), request.key) != nullptr;
    if (resident) {
        const RequestPiece piece = {&request, sizeof(request)};
        engine_request(MessageType::release, &piece, 1, true);
    }
    relation_close(index, AccessShareLock);
    PG_RETURN_BOOL(resident);
}
