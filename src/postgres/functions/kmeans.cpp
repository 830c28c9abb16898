// kmeans(rel, column, k, iterations, seed, sample): centroids, trained on the engine's device.
#include "postgres/client/request.h"
#include "postgres/fmgr_cpp.h"
#include "postgres/functions/sample_rows.h"
#include "postgres/types/vector.h"

#include "numeric/metric.h"
#include "protocol/clustering.h"

extern "C" {
#include "funcapi.h"
#include "utils/tuplestore.h"
}

namespace pgwarp
{

namespace
{

constexpr int64 rows_per_centroid = 256;
constexpr uint64 inline_read_bytes = 1U << 20;

void check_range(const char* name, int64 value, int64 least, int64 most)
{
    if (value >= least && value <= most) return;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s must be between " INT64_FORMAT " and " INT64_FORMAT, name, least, most)));
}

// Returns the number of the array with this name in a finished build.
uint32 find_built_array(const BuildRunReply* result, const char* name, uint64 bytes)
{
    const auto* shapes = reinterpret_cast<const ArrayShape*>(result + 1);
    for (uint32 i = 0; i < result->array_count; ++i) {
        if (strncmp(shapes[i].name, name, sizeof(shapes[i].name)) == 0 && shapes[i].bytes() == bytes) return i;
    }
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("pgwarp-engine made no array \"%s\"", name)));
}

void read_built_array(const EngineBuild* build, uint32 array, char* out, uint64 bytes)
{
    for (uint64 offset = 0; offset < bytes;) {
        BuildReadRequest request = {};
        request.token = build->token;
        request.array = array;
        request.buffer = no_buffer;
        request.offset = offset;
        request.length = Min(inline_read_bytes, bytes - offset);
        const RequestPiece piece = {&request, sizeof(request)};
        const EngineReply reply = engine_request(MessageType::build_read, &piece, 1, false);
        if (reply.payload_bytes < request.length) {
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("pgwarp-engine sent a reply that is too short")));
        }
        memcpy(out + offset, reply.payload, request.length);
        offset += request.length;
    }
}

// Returns the centroids [k][dimensions] of the column.
float* train(SampledColumn* sampled, int32 k)
{
    EngineBuild* build = sampled->build;
    send_sample(sampled);
    if (sampled->sent < static_cast<uint64>(k)) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("cannot train %d centroids on " UINT64_FORMAT " rows", k, sampled->sent),
                        sampled->sent < sampled->counted ? errhint("Raise the sample.") : 0));
    }
    const BuildRunReply* result = run_engine_build(build);
    const uint64 bytes = sizeof(float) * build->shape.dimensions * static_cast<uint64>(k);
    auto* centroids = static_cast<char*>(MemoryContextAllocHuge(CurrentMemoryContext, bytes));
    read_built_array(build, find_built_array(result, array_clusters, bytes), centroids, bytes);
    end_engine_build(build);
    return reinterpret_cast<float*>(centroids);
}

// The same; on an error the engine's build is ended first.
float* train_guarded(SampledColumn* sampled, int32 k)
{
    float* volatile centroids = nullptr;
    PG_TRY();
    {
        centroids = train(sampled, k);
    }
    PG_CATCH();
    {
        abandon_engine_build(sampled->build);
        PG_RE_THROW();
    }
    PG_END_TRY();
    return centroids;
}

EngineBuild* describe_build(int32 k, int32 iterations, int64 seed)
{
    auto* build = static_cast<EngineBuild*>(palloc0(sizeof(EngineBuild)));
    build->shape.method = clustering_method;
    build->shape.element = ElementType::float32;
    build->shape.metric = static_cast<uint8>(Metric::l2);
    build->options.set("clusters", k);
    build->options.set("iterations", iterations);
    build->options.set("seed", seed);
    return build;
}

void put_centroids(const ReturnSetInfo* info, const float* centroids, int32 k, int dimensions)
{
    for (int32 i = 0; i < k; ++i) {
        Vector* vector = make_vector(dimensions);
        memcpy(vector->x, centroids + static_cast<size_t>(i) * dimensions, sizeof(float) * dimensions);
        Datum values[2] = {Int32GetDatum(i + 1), PointerGetDatum(vector)};
        bool nulls[2] = {};
        tuplestore_putvalues(info->setResult, info->setDesc, values, nulls);
        pfree(vector);
    }
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_kmeans)
{
    using namespace pgwarp;
    InitMaterializedSRF(fcinfo, 0);
    const auto* info = reinterpret_cast<const ReturnSetInfo*>(fcinfo->resultinfo);
    // The function is not strict, because the sample may be NULL.
    for (int i = 0; i < 5; ++i) {
        if (PG_ARGISNULL(i)) return static_cast<Datum>(0);
    }
    const int32 k = PG_GETARG_INT32(2);
    const int32 iterations = PG_GETARG_INT32(3);
    const int64 seed = PG_GETARG_INT64(4);
    const int64 sample = PG_ARGISNULL(5) ? rows_per_centroid * k : PG_GETARG_INT64(5);
    check_range("k", k, 1, most_clusters);
    check_range("iterations", iterations, 1, most_cluster_iterations);
    check_range("sample", sample, k, PG_INT64_MAX);
    SampledColumn sampled = {};
    sampled.table = PG_GETARG_OID(0);
    sampled.column = NameStr(*PG_GETARG_NAME(1));
    sampled.type = TupleDescAttr(info->setDesc, 1)->atttypid;
    sampled.seed = static_cast<uint64>(seed);
    sampled.wanted = static_cast<uint64>(sample);
    sampled.build = describe_build(k, iterations, seed);
    open_sampled_column(&sampled);
    const float* centroids = train_guarded(&sampled, k);
    put_centroids(info, centroids, k, static_cast<int>(sampled.build->shape.dimensions));
    return static_cast<Datum>(0);
}
