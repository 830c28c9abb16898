// Compares rows with the centroids of an index's lists in the backend, to validate the engine's results and to detect
// drift.
#include "numeric/metric.h"
#include "postgres/merge/merge_run.h"
#include "postgres/storage/array_role.h"

namespace pgwarp
{

namespace
{

const StoredArray& centroids_of(Relation index, const IndexShape& shape, const Directory& directory)
{
    const StoredArray* centroids = find_array(directory, access_method(shape.method), ArrayRole::centroids);
    if (centroids == nullptr || centroids->shape.type != ArrayType::f32 || centroids->shape.width != shape.dimensions) {
        report_corruption(index, metapage_block, "the index has no centroids");
    }
    return *centroids;
}

void read_centroids(Relation index, const Directory& directory, const StoredArray& centroids, uint64 first,
                    uint64 count, float* out)
{
    const uint64 row_bytes = sizeof(float) * centroids.shape.width;
    if (first + count > centroids.shape.rows) report_corruption(index, metapage_block, "a row lies in no list");
    if (read_array(index, directory, centroids, first * row_bytes, count * row_bytes, out) == ReadResult::recycled) {
        elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(index));
    }
}

}  // namespace

NearestList compare_list(const IndexShape& shape, const float* vector, const float* centroid, uint32 list)
{
    double dot = 0;
    double squared = 0;
    for (uint32 d = 0; d < shape.dimensions; ++d) {
        const double difference = static_cast<double>(vector[d]) - centroid[d];
        dot += static_cast<double>(vector[d]) * centroid[d];
        squared += difference * difference;
    }
    return {list, static_cast<Metric>(shape.metric) == Metric::cosine ? -dot : squared, squared, squared};
}

void read_centroid(Relation index, const IndexShape& shape, const Directory& directory, uint32 list, float* out)
{
    read_centroids(index, directory, centroids_of(index, shape, directory), list, 1, out);
}

void find_nearest_lists(Relation index, const IndexShape& shape, const Directory& directory, const float* vectors,
                        uint32 count, NearestList* nearest)
{
    const StoredArray& centroids = centroids_of(index, shape, directory);
    const uint64 lists = centroids.shape.rows;
    const uint64 step = Max(uint64{1}, chunk_bytes / (sizeof(float) * shape.dimensions));
    auto* piece = static_cast<float*>(palloc(sizeof(float) * shape.dimensions * step));
    for (uint64 first = 0; first < lists; first += step) {
        merge_delay_point();
        const uint64 rows = Min(step, lists - first);
        read_centroids(index, directory, centroids, first, rows, piece);
        for (uint32 i = 0; i < count; ++i) {
            for (uint64 row = 0; row < rows; ++row) {
                const NearestList found =
                    compare_list(shape, vectors + static_cast<Size>(i) * shape.dimensions,
                                 piece + row * shape.dimensions, static_cast<uint32>(first + row));
                const double farthest = found.list == 0 ? 0 : nearest[i].farthest;
                if (found.list == 0 || found.score < nearest[i].score) nearest[i] = found;
                nearest[i].farthest = Max(farthest, found.error);
            }
        }
    }
    pfree(piece);
}

}  // namespace pgwarp
