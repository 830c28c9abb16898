// Builds of indexes of vectors: they draw hash functions for the rows, sign the rows, and measure recall.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>

#include "methods/arrays.h"
#include "methods/bulk_memory.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/vector_calibration.h"
#include "methods/options.h"
#include "methods/recall/truth.h"
#include "numeric/sample.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::uint64_t hash_seed = 0x67656e6965;
constexpr std::uint64_t width_seed = hash_seed + 1;
constexpr std::uint64_t calibration_seed = hash_seed + 2;

constexpr std::size_t step_rows = 4096;
constexpr std::size_t width_queries = 32;      // that the width is chosen by
constexpr std::size_t width_neighbours = 100;  // of each
// Of the neighbours' distance. A count tells most about a distance where a function collides with a probability of
// about a half: the information, (p'(D))^2 / (p (1 - p)), has a flat maximum there. Half and twice the
// width take several times as many candidates.
constexpr double normal_width = 1.7;
constexpr double cauchy_width = 2.5;
constexpr double binning_width = 0.63;

double relative_width(const HashForm& form)
{
    if (form.family == HashFamily::binning) return binning_width;
    return form.metric == Metric::l1 ? cauchy_width : normal_width;
}

// The arrays that a build makes.
struct SignedRows {
    SignedRows(const IndexShape& shape, const ParameterList& options)
        : hashes(hash_form(shape, options), shape.dimensions)
    {
    }

    void sign(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
    {
        vectors = rows.vectors();
        count = rows.size();
        signatures.resize(count * hashes.signature_bytes());
        for (std::size_t first = 0; first < count; first += step_rows) {
            progress.advance("encoding rows", first, count);
            const std::size_t some = std::min(step_rows, count - first);
            hashes.sign(vectors.subspan(first * hashes.dimensions(), some * hashes.dimensions()),
                        signatures.data() + first * hashes.signature_bytes(), pool, progress.cancel);
        }
    }
    std::vector<ArrayShape> row_arrays() const
    {
        return {make_array_shape(array_signatures, ArrayType::u8, count, hashes.signature_bytes()),
                make_array_shape(array_vectors, ArrayType::f32, count, hashes.dimensions())};
    }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const
    {
        if (array == array_hashes) return read_piece(hashes.parameters(), offset, out);
        if (array == array_signatures) return read_piece(std::span<const std::uint8_t>(signatures), offset, out);
        if (array == array_vectors) return read_piece(vectors, offset, out);
        throw BadRequest("unknown array of signatures");
    }
    ParameterList options() const
    {
        const HashForm& form = hashes.form();
        ParameterList options;
        options.set(option_hashes, static_cast<std::int64_t>(form.functions));
        if (form.family == HashFamily::signs) return options;
        options.set(option_buckets, static_cast<std::int64_t>(form.buckets));
        if (form.metric == Metric::l1) options.set(option_lsh, form.family == HashFamily::binning ? 1 : 0);
        if (form.family == HashFamily::binning) options.set(option_rehashed, static_cast<std::int64_t>(form.buckets));
        if (width > 0) options.set(option_width, std::llround(std::min(double{width} * 1e6, 0x1p62)));
        return options;
    }

    VectorHashes hashes;
    BulkVector<std::uint8_t> signatures;
    std::span<const float> vectors;  // in the rows' memory
    std::size_t count = 0;
    float width = 0;  // of the functions, where this build drew them
};

class VectorBuilder : public Builder
{
public:
    VectorBuilder(const IndexShape& shape, const ParameterList& options) : made_(shape, options) {}

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        made_.width = choose_width(rows, progress, pool);
        made_.hashes.draw(made_.width, hash_seed);
        made_.sign(rows, progress, pool);
        if (made_.count > 1) calibrate(progress, pool);
    }
    std::vector<ArrayShape> arrays() const override
    {
        std::vector<ArrayShape> all = made_.row_arrays();
        all.insert(all.begin(), made_.hashes.shape());
        return all;
    }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        made_.read(array, offset, out);
    }
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return made_.options(); }

private:
    float choose_width(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) const;
    void calibrate(const BuildProgress& progress, ThreadPool& pool);

    SignedRows made_;
    Calibration calibration_;
};

// Returns the width at which the functions tell best how far the farther ones of a row's nearest are.
float VectorBuilder::choose_width(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) const
{
    const HashForm& form = made_.hashes.form();
    if (form.family == HashFamily::signs || rows.size() < 2) return 1;
    progress.advance("calibrating", 0, 1);
    const std::size_t dimensions = rows.dimensions();
    const std::vector<std::uint32_t> sample = sample_rows(rows.size(), width_queries, width_seed);
    const auto truth =
        calibration_truth(form.metric, rows.vectors(), dimensions, sample, pool, progress.cancel, {}, width_neighbours);
    const auto vector = [&](std::uint32_t row) { return rows.vectors().data() + std::size_t{row} * dimensions; };
    std::vector<double> distances;
    for (std::size_t q = 0; q < sample.size(); ++q) {
        if (truth[q].empty()) continue;  // single precision holds no distance to another row
        distances.push_back(canonical_distance(form.metric, vector(sample[q]), vector(truth[q].back()), dimensions));
    }
    std::sort(distances.begin(), distances.end());
    // Where most rows are copies of others, a row that is none tells.
    const auto median = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    const auto positive = std::find_if(median, distances.end(), [](double distance) { return distance > 0; });
    if (positive == distances.end()) return 1;
    return static_cast<float>(std::min(*positive * relative_width(form), double{FLT_MAX}));
}

void VectorBuilder::calibrate(const BuildProgress& progress, ThreadPool& pool)
{
    const std::size_t dimensions = made_.hashes.dimensions();
    const std::vector<std::uint32_t> sample = sample_rows(made_.count, most_sampled_queries, calibration_seed);
    VectorRecall recall(made_.hashes, sample, gather_rows(made_.vectors.data(), dimensions, sample));
    for (std::size_t first = 0; first < made_.count; first += step_rows) {
        progress.advance("calibrating", first, made_.count);
        recall.add(made_.vectors.data() + first * dimensions,
                   made_.signatures.data() + first * made_.hashes.signature_bytes(),
                   std::min(step_rows, made_.count - first), first, {}, pool);
    }
    calibration_ = recall.curve();
}

class VectorMergeBuilder : public Builder
{
public:
    VectorMergeBuilder(const IndexShape& shape, const ParameterList& options) : made_(shape, options) {}

    void give(const ArrayShape& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        const ArrayShape expected = made_.hashes.shape();
        require_array(std::span(&array, 1), expected.name, expected.type, expected.rows, expected.width);
        write_piece(made_.hashes.parameters(), offset, bytes);
        given_ += bytes.size();
    }
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        if (given_ != made_.hashes.shape().bytes()) throw BadRequest("the hash functions were not given whole");
        made_.sign(rows, progress, pool);
    }
    std::vector<ArrayShape> arrays() const override { return made_.row_arrays(); }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        made_.read(array, offset, out);
    }
    Calibration calibration() const override { return {}; }
    ParameterList effective_options() const override { return made_.options(); }

private:
    SignedRows made_;
    std::uint64_t given_ = 0;  // bytes
};

}  // namespace

HashForm hash_form(const IndexShape& shape, const ParameterList& options)
{
    require_options(matchcount_description, options, shape);
    HashForm form;
    form.metric = static_cast<Metric>(shape.metric);
    if (form.metric != Metric::l2 && form.metric != Metric::l1 && form.metric != Metric::cosine)
        throw BadRequest("matchcount knows no hash functions for this distance");
    if (form.metric == Metric::cosine) form.family = HashFamily::signs;
    if (options.get(option_lsh, 0) == 1) form.family = HashFamily::binning;
    form.functions = function_count(options);
    if (const auto buckets = static_cast<std::size_t>(options.get(option_buckets, 0)); buckets != 0)
        form.buckets = buckets;
    return form;
}

std::unique_ptr<Builder> make_vector_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<VectorBuilder>(shape, options);
}

std::unique_ptr<Builder> make_vector_merge_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<VectorMergeBuilder>(shape, options);
}

}  // namespace pgwarp::matchcount
