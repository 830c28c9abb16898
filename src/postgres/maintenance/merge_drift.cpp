// Drift: the mean error with which the lists' centroids stand for new rows, beside that of the rows that are there.
#include "postgres/maintenance/stored_vectors.h"

namespace pgwarp
{

namespace
{

constexpr uint32 sample_rows = 48;
constexpr double tolerance = 1.5;        // times the error of old rows
constexpr double codes_tolerance = 2.5;  // where the old rows' residuals are known by their codes alone

// Every n-th live row of the logs.
struct DeltaSample {
    uint64 stride;
    uint64 seen;
    uint32 taken;
    uint32 dimensions;
    float* vectors;
};

void sample_row(void* state, const DeltaEntry&, const float* vector)
{
    auto* sample = static_cast<DeltaSample*>(state);
    if (sample->seen++ % sample->stride != 0 || sample->taken == sample_rows) return;
    memcpy(sample->vectors + static_cast<Size>(sample->taken++) * sample->dimensions, vector,
           sizeof(float) * sample->dimensions);
}

// Mean squared distance of new rows to the centroids that they would get.
double error_of_new(MergeRun* merge)
{
    const uint32 dimensions = merge->meta.shape.dimensions;
    auto* vectors = static_cast<float*>(palloc(sizeof(float) * dimensions * sample_rows));
    DeltaSample sample = {Max(uint64{1}, merge->new_rows() / sample_rows), 0, 0, dimensions, vectors};
    visit_delta(merge, true, sample_row, &sample);
    NearestList nearest[sample_rows] = {};
    find_nearest_lists(merge->index, merge->meta.shape, *merge->directory, vectors, sample.taken, nearest);
    double sum = 0;
    for (uint32 i = 0; i < sample.taken; ++i) sum += nearest[i].error;
    pfree(vectors);
    return sum / Max(sample.taken, 1U);
}

void read_rows(const MergeRun* merge, const StoredArray& array, uint64 first, uint64 count, void* out)
{
    const uint64 row_bytes = array.shape.width * array_type_bytes(array.shape.type);
    if (read_array(merge->index, *merge->directory, array, first * row_bytes, count * row_bytes, out) ==
        ReadResult::recycled) {
        elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
    }
}

// The squared distance of an old row to its centroid.
double error_by_vector(const MergeRun* merge, uint64 row)
{
    const IndexShape& shape = merge->meta.shape;
    const StoredArray* lists = find_array(*merge->directory, "list_of_row");
    if (lists == nullptr) report_corruption(merge->index, metapage_block, "the index has no lists");
    uint32 list = 0;
    read_rows(merge, *lists, row, 1, &list);
    auto* vector = static_cast<float*>(palloc(sizeof(float) * shape.dimensions));
    auto* centroid = static_cast<float*>(palloc(sizeof(float) * shape.dimensions));
    read_stored_vectors(merge->index, *merge->directory, shape.dimensions, row, 1, vector);
    read_centroid(merge->index, shape, *merge->directory, list, centroid);
    const double error = compare_list(shape, vector, centroid, list).error;
    pfree(centroid);
    pfree(vector);
    return error;
}

// The same where residuals are kept in bytes: scale * (byte - 128) each.
double error_by_bytes(const MergeRun* merge, const StoredArray& scales, const StoredArray& codes, uint64 row)
{
    float scale = 0;
    auto* code = static_cast<uint8*>(palloc(codes.shape.width));
    read_rows(merge, scales, row, 1, &scale);
    read_rows(merge, codes, row, 1, code);
    double sum = 0;
    for (uint64 d = 0; d < codes.shape.width; ++d) {
        const double value = (static_cast<int>(code[d]) - 128) * static_cast<double>(scale);
        sum += value * value;
    }
    pfree(code);
    return sum;
}

// The same where they are product codes; a rotation doesn't change it. Parts as wide as each other, or by one.
double error_by_codes(const MergeRun* merge, const StoredArray& codebooks, const StoredArray& codes, uint64 row)
{
    const uint64 dimensions = merge->meta.shape.dimensions;
    const uint64 parts = codes.shape.width;
    auto* code = static_cast<uint8*>(palloc(parts));
    auto* books = static_cast<float*>(palloc(codebooks.shape.bytes()));
    read_rows(merge, codes, row, 1, code);
    read_rows(merge, codebooks, 0, codebooks.shape.rows, books);
    double sum = 0;
    for (uint64 part = 0; part < parts; ++part) {
        const uint64 begin = part * dimensions / parts;
        const uint64 width = (part + 1) * dimensions / parts - begin;
        const float* word = books + begin * codebooks.shape.rows + code[part] * width;
        for (uint64 d = 0; d < width; ++d) sum += static_cast<double>(word[d]) * word[d];
    }
    pfree(books);
    pfree(code);
    return sum;
}

double error_of_row(const MergeRun* merge, uint64 row)
{
    const Directory& directory = *merge->directory;
    const StoredArray* codes = find_array(directory, "codes");
    const StoredArray* scales = find_array(directory, "code_scale");
    const StoredArray* codebooks = find_array(directory, "codebooks");
    if (keeps_vectors(directory)) return error_by_vector(merge, row);
    if (codes != nullptr && scales != nullptr) return error_by_bytes(merge, *scales, *codes, row);
    if (codes != nullptr && codebooks != nullptr) return error_by_codes(merge, *codebooks, *codes, row);
    report_corruption(merge->index, metapage_block, "the index has neither vectors nor codes");
}

// Mean over live old rows.
double error_of_old(const MergeRun* merge)
{
    const uint64 rows = merge->counts.rows;
    const uint64 stride = Max(uint64{1}, rows / sample_rows);
    double sum = 0;
    uint32 taken = 0;
    for (uint64 row = 0; row < rows && taken < sample_rows; row += stride) {
        merge_delay_point();
        if ((merge->dead[row / 64] >> (row % 64)) & 1) continue;
        sum += error_of_row(merge, row);
        ++taken;
    }
    return taken > 0 ? sum / taken : 0;
}

}  // namespace

bool can_retrain(const MergeRun* merge)
{
    return keeps_vectors(*merge->directory);
}

bool has_drifted(MergeRun* merge)
{
    if (merge->new_rows() < sample_rows) return false;
    const double old_error = error_of_old(merge);
    const double new_error = error_of_new(merge);
    elog(DEBUG1, "index \"%s\": mean quantization error of old rows %g, of new ones %g",
         RelationGetRelationName(merge->index), old_error, new_error);
    return new_error > (can_retrain(merge) ? tolerance : codes_tolerance) * old_error;
}

}  // namespace pgwarp
