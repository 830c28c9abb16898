// Drift: the mean error with which centroids and codes stand for new rows, beside that of the rows that the quantizers
// were trained on. Those are the first ones, until many were dead: then the first ones stand for them.
#include <cfloat>
#include <cmath>

#include "numeric/hadamard.h"
#include "numeric/hash.h"
#include "numeric/metric.h"
#include "postgres/merge/stored_vectors.h"

namespace pgwarp
{

namespace
{

constexpr uint32 sample_rows = 128;
constexpr uint64 fewest_new_rows = 48;   // fewer say little
constexpr uint64 new_part = 16;          // of the rows, that has come since the training before it is worth another
constexpr double tolerance = 1.5;        // times the error of old rows
constexpr double codes_tolerance = 2.5;  // where the old rows' residuals are known by their codes alone
constexpr double deviations = 3;         // by which the means of two samples differ by chance
constexpr uint64 rows_for_a_word = 32;   // with fewer, words know the rows that they were trained on by heart

// One row of each stride, at any place in it: rows may have a period of their own.
uint64 sampled_row(uint64 number, uint64 stride)
{
    return number * stride + mix_hash(number) % stride;
}

// So some live rows of the logs.
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
    const uint64 place = sample->seen++;
    if (place != sampled_row(place / sample->stride, sample->stride) || sample->taken == sample_rows) return;
    memcpy(sample->vectors + static_cast<Size>(sample->taken++) * sample->dimensions, vector,
           sizeof(float) * sample->dimensions);
}

void read_rows(const MergeRun* merge, const StoredArray& array, uint64 first, uint64 count, void* out)
{
    const uint64 row_bytes = array.shape.width * array_type_bytes(array.shape.type);
    if (read_array(merge->index, *merge->directory, array, first * row_bytes, count * row_bytes, out) ==
        ReadResult::recycled) {
        elog(ERROR, "index \"%s\" was changed during a merge", RelationGetRelationName(merge->index));
    }
}

// A row's squared distances: to its centroid, and to what its code makes of it.
struct RowError {
    double centroid;
    double code;
};

// A mean over a sample, and its own variance: errors are uneven, and few rows far from any word may make most of one.
class MeanError
{
public:
    void add(double error)
    {
        ++rows_;
        const double step = error - mean_;
        mean_ += step / rows_;
        squares_ += step * (error - mean_);
    }
    double mean() const { return mean_; }
    double variance() const { return rows_ < 2 ? 0 : squares_ / (rows_ - 1.0) / rows_; }

private:
    double rows_ = 0;
    double mean_ = 0;
    double squares_ = 0;  // of the differences from the mean
};

struct SampleError {
    MeanError centroid;
    MeanError code;

    void add(const RowError& error)
    {
        centroid.add(error.centroid);
        code.add(error.code);
    }
};

// Whether new rows fare worse than `times` as badly as old ones, and not by the luck of two samples.
bool is_worse(const MeanError& fresh, const MeanError& old, double times)
{
    const double difference = fresh.mean() - times * old.mean();
    const double variance = fresh.variance() + times * times * old.variance();
    return difference > deviations * sqrt(variance);
}

// Product quantizers that were trained on so many rows that others fare alike: [part][word][width], parts as wide as
// each other, or by one; and the rotation of the residuals that they are of.
struct Codebooks {
    uint32 dimensions;
    uint64 parts;
    uint64 words;
    float* values;    // null: there are none such
    float* rotation;  // [dimensions][dimensions]; null: none that was learnt
    uint8* signs;     // of hadamard.h; null: none
};

// A whole array; null when the index has none of this name.
void* read_small(const MergeRun* merge, const char* name)
{
    const StoredArray* array = find_array(*merge->directory, name);
    if (array == nullptr) return nullptr;
    void* bytes = MemoryContextAllocHuge(CurrentMemoryContext, Max(array->shape.bytes(), uint64{1}));
    read_rows(merge, *array, 0, array->shape.rows, bytes);
    return bytes;
}

Codebooks read_codebooks(const MergeRun* merge)
{
    const StoredArray* books = find_array(*merge->directory, "codebooks");
    const StoredArray* codes = find_array(*merge->directory, "codes");
    Codebooks read = {merge->meta.shape.dimensions, 0, 0, nullptr, nullptr, nullptr};
    if (books == nullptr || codes == nullptr || !can_retrain(merge)) return read;
    if (merge->directory->trained_rows < rows_for_a_word * books->shape.rows) return read;
    read.parts = codes->shape.width;
    read.words = books->shape.rows;
    read.values = static_cast<float*>(palloc(books->shape.bytes()));
    read_rows(merge, *books, 0, books->shape.rows, read.values);
    read.rotation = static_cast<float*>(read_small(merge, "rotation"));
    read.signs = static_cast<uint8*>(read_small(merge, "rotation_signs"));
    return read;
}

void free_codebooks(const Codebooks& books)
{
    if (books.values != nullptr) pfree(books.values);
    if (books.rotation != nullptr) pfree(books.rotation);
    if (books.signs != nullptr) pfree(books.signs);
}

// The residual as codes see it. `out` has room for it and is not the residual.
void rotate(const Codebooks& books, const float* residual, float* out)
{
    memcpy(out, residual, sizeof(float) * books.dimensions);
    if (books.signs != nullptr) hadamard_rotate({books.signs, HadamardPlan::rounds * size_t{books.dimensions}}, out);
    if (books.rotation == nullptr) return;
    for (uint32 row = 0; row < books.dimensions; ++row) {
        const float* direction = books.rotation + static_cast<Size>(row) * books.dimensions;
        out[row] = static_cast<float>(canonical_dot(direction, residual, books.dimensions));
    }
}

// Squared distance of a residual to the nearest words, or to those of `code`.
double error_of_code(const Codebooks& books, const float* residual, const uint8* code)
{
    double sum = 0;
    for (uint64 part = 0; part < books.parts; ++part) {
        const uint64 begin = part * books.dimensions / books.parts;
        const uint64 width = (part + 1) * books.dimensions / books.parts - begin;
        const uint64 first = code != nullptr ? code[part] : 0;
        const uint64 end = code != nullptr ? first + 1 : books.words;
        double nearest = DBL_MAX;
        for (uint64 word = first; word < end; ++word) {
            const float* values = books.values + begin * books.words + word * width;
            double squared = 0;
            for (uint64 d = 0; d < width; ++d) {
                const double difference = static_cast<double>(residual[begin + d]) - values[d];
                squared += difference * difference;
            }
            nearest = Min(nearest, squared);
        }
        sum += nearest;
    }
    return sum;
}

// What a code makes of a vector of this list; 0 where there are no product codes.
double code_error_of(const MergeRun* merge, const Codebooks& books, const float* vector, uint32 list, const uint8* code)
{
    if (books.values == nullptr) return 0;
    auto* residual = static_cast<float*>(palloc(sizeof(float) * books.dimensions));
    read_centroid(merge->index, merge->meta.shape, *merge->directory, list, residual);
    for (uint32 d = 0; d < books.dimensions; ++d) residual[d] = vector[d] - residual[d];
    auto* rotated = static_cast<float*>(palloc(sizeof(float) * books.dimensions));
    rotate(books, residual, rotated);
    const double error = error_of_code(books, rotated, code);
    pfree(rotated);
    pfree(residual);
    return error;
}

// Mean of new rows, with the centroids and codes that they would get.
SampleError error_of_new(MergeRun* merge, const Codebooks& books)
{
    const uint32 dimensions = merge->meta.shape.dimensions;
    auto* vectors = static_cast<float*>(palloc(sizeof(float) * dimensions * sample_rows));
    DeltaSample sample = {Max(uint64{1}, merge->new_rows() / sample_rows), 0, 0, dimensions, vectors};
    visit_delta(merge, true, sample_row, &sample);
    NearestList nearest[sample_rows] = {};
    find_nearest_lists(merge->index, merge->meta.shape, *merge->directory, vectors, sample.taken, nearest);
    SampleError errors;
    for (uint32 i = 0; i < sample.taken; ++i) {
        const float* vector = vectors + static_cast<Size>(i) * dimensions;
        errors.add({nearest[i].error, code_error_of(merge, books, vector, nearest[i].list, nullptr)});
    }
    pfree(vectors);
    return errors;
}

// The errors of an old row whose vector is kept.
RowError error_by_vector(const MergeRun* merge, const Codebooks& books, uint64 row)
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
    RowError error = {compare_list(shape, vector, centroid, list).error, 0};
    if (books.values != nullptr) {
        auto* code = static_cast<uint8*>(palloc(books.parts));
        read_rows(merge, *find_array(*merge->directory, "codes"), row, 1, code);
        error.code = code_error_of(merge, books, vector, list, code);
        pfree(code);
    }
    pfree(centroid);
    pfree(vector);
    return error;
}

// The squared distance of an old row to its centroid where residuals are kept in bytes: scale * (byte - 128) each.
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

// The same where they are product codes; a rotation doesn't change it.
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

RowError error_of_row(const MergeRun* merge, const Codebooks& books, uint64 row)
{
    const Directory& directory = *merge->directory;
    const StoredArray* codes = find_array(directory, "codes");
    const StoredArray* scales = find_array(directory, "code_scale");
    const StoredArray* codebooks = find_array(directory, "codebooks");
    if (keeps_vectors(directory)) return error_by_vector(merge, books, row);
    if (codes != nullptr && scales != nullptr) return {error_by_bytes(merge, *scales, *codes, row), 0};
    if (codes != nullptr && codebooks != nullptr) return {error_by_codes(merge, *codebooks, *codes, row), 0};
    report_corruption(merge->index, metapage_block, "the index has neither vectors nor codes");
}

// Mean over the rows that the quantizers were trained on, dead ones too. Rows that came later don't count: they may
// have drifted bit by bit.
SampleError error_of_old(const MergeRun* merge, const Codebooks& books)
{
    const uint64 trained = merge->directory->trained_rows;
    const uint64 rows = trained > 0 ? Min(trained, merge->counts.rows) : merge->counts.rows;
    const uint64 stride = Max(uint64{1}, rows / sample_rows);
    SampleError errors;
    uint32 taken = 0;
    while (taken < sample_rows && sampled_row(taken, stride) < rows) {
        merge_delay_point();
        errors.add(error_of_row(merge, books, sampled_row(taken++, stride)));
    }
    return errors;
}

// Whether enough rows have come since the training. A few that are unlike the others may stay so after another.
bool are_many_new(const MergeRun* merge)
{
    const uint64 trained = merge->directory->trained_rows;
    const uint64 since = merge->counts.rows - Min(trained, merge->counts.rows) + merge->new_rows();
    return since > merge->counts.live() / new_part;
}

}  // namespace

bool can_retrain(const MergeRun* merge)
{
    return keeps_vectors(*merge->directory);
}

const char* compared_for_drift(const Directory& directory)
{
    if (find_array(directory, "centroids") == nullptr) return nullptr;
    const StoredArray* books = find_array(directory, "codebooks");
    if (books == nullptr) return "centroids";
    if (!keeps_vectors(directory)) return "centroids, by codes";
    return directory.trained_rows < rows_for_a_word * books->shape.rows ? "centroids" : "centroids and codes";
}

bool has_drifted(MergeRun* merge)
{
    if (merge->new_rows() < fewest_new_rows || !are_many_new(merge)) return false;
    Codebooks books = read_codebooks(merge);
    const SampleError old = error_of_old(merge, books);
    const SampleError fresh = error_of_new(merge, books);
    free_codebooks(books);
    elog(DEBUG1, "index \"%s\": mean quantization error of old rows %g, coded %g, of new ones %g, coded %g",
         RelationGetRelationName(merge->index), old.centroid.mean(), old.code.mean(), fresh.centroid.mean(),
         fresh.code.mean());
    if (!can_retrain(merge)) return is_worse(fresh.centroid, old.centroid, codes_tolerance);
    return is_worse(fresh.centroid, old.centroid, tolerance) || is_worse(fresh.code, old.code, tolerance);
}

}  // namespace pgwarp
