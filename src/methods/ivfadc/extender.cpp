#include "methods/ivfadc/extender.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "methods/arrays.h"
#include "methods/ivfadc/build_arrays.h"
#include "methods/ivfadc/byte_lists.h"
#include "methods/ivfadc/ivfadc.h"
#include "numeric/half_codec.h"
#include "numeric/kmeans.h"
#include "numeric/product_quantizer.h"
#include "numeric/rotation.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t step_rows = 8192;

class IvfadcExtender : public Builder
{
public:
    IvfadcExtender(const IndexShape& shape, const ParameterList& options)
        : metric_(static_cast<Metric>(shape.metric)),
          dimensions_(shape.dimensions),
          options_(IvfOptions::resolve(options, std::numeric_limits<std::uint32_t>::max(), dimensions_)),
          quantizer_(dimensions_, options_.subquantizers)
    {
        if (metric_ == Metric::l1) throw BadRequest("ivfadc knows no L1 distance");
        centroids_.resize(options_.lists * dimensions_);
        if (options_.opq) rotation_ = Rotation(dimensions_);
        half_codec_.mean.resize(dimensions_);
        for (const ArrayShape& array : needed()) given_.push_back({array, 0});
    }

    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override;
    std::vector<ArrayShape> arrays() const override;
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        made().read(array, offset, out);
    }
    Calibration calibration() const override { return {}; }
    ParameterList effective_options() const override { return options_.as_parameters(); }

private:
    struct Given {
        ArrayShape shape;
        std::uint64_t bytes;  // that came
    };
    bool stores_half() const { return options_.keeps_half() && !options_.keeps_full(); }
    std::vector<ArrayShape> needed() const;
    void check_given();
    void assign(std::span<const float> rows, std::span<std::uint32_t> lists, ThreadPool& pool) const;
    void encode_step(std::span<const float> vectors, std::size_t first, std::size_t count, ThreadPool& pool);
    void measure_halves(std::span<const float> vectors, const BuildProgress& progress, ThreadPool& pool);
    IvfadcArrays made() const;

    Metric metric_;
    std::size_t dimensions_;
    IvfOptions options_;
    ProductQuantizer quantizer_;
    Rotation rotation_;
    HalfCodec half_codec_;
    float half_scale_[2] = {1, 0};
    std::vector<float> centroids_;
    std::vector<Given> given_;
    std::size_t rows_ = 0;
    std::vector<std::uint32_t> list_of_row_;
    std::vector<std::uint8_t> codes_;
    std::vector<float> code_scale_;
    std::span<const std::uint16_t> halves_;
    std::span<const float> vectors_;
};

bool is_named(const ArrayShape& array, const char* name)
{
    return std::strncmp(array.name, name, sizeof(array.name)) == 0;
}

bool is_per_row(const ArrayShape& array)
{
    const std::string name = array.name;
    return name == array_list_of_row || name == array_code_scale || name == array_codes || name == array_half ||
           name == array_vectors;
}

// What an index with these options has besides its rows.
std::vector<ArrayShape> IvfadcExtender::needed() const
{
    std::vector<ArrayShape> shapes = made().shapes();
    std::erase_if(shapes, is_per_row);
    return shapes;
}

std::vector<ArrayShape> IvfadcExtender::arrays() const
{
    std::vector<ArrayShape> shapes = made().shapes();
    std::erase_if(shapes, [](const ArrayShape& array) {
        return !is_per_row(array) && std::string(array.name) != array_half_scale;
    });
    return shapes;
}

void IvfadcExtender::give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (is_named(shape, array_list_of_row)) {
        require_array(std::span(&shape, 1), array_list_of_row, ArrayType::u32, shape.rows, 1);
        if (shape.rows > std::numeric_limits<std::uint32_t>::max()) throw BadRequest("too many rows for one segment");
        list_of_row_.resize(shape.rows, no_list);
        return write_piece(std::span<std::uint32_t>(list_of_row_), offset, bytes);
    }
    const auto found = std::find_if(given_.begin(), given_.end(), [&](const Given& given) {
        return std::strncmp(given.shape.name, shape.name, sizeof(shape.name)) == 0;
    });
    if (found == given_.end()) throw BadRequest("an array that the index has no use for");
    require_array(std::span(&shape, 1), found->shape.name, found->shape.type, found->shape.rows, found->shape.width);
    const std::string name = found->shape.name;
    if (name == array_centroids) write_piece(std::span<float>(centroids_), offset, bytes);
    if (name == array_rotation) write_piece(rotation_.matrix(), offset, bytes);
    if (name == array_rotation_signs) write_piece(rotation_.signs(), offset, bytes);
    if (name == array_codebooks) write_piece(quantizer_.codebooks(), offset, bytes);
    if (name == array_half_mean) write_piece(std::span<float>(half_codec_.mean), offset, bytes);
    if (name == array_half_scale) write_piece(std::span<float>(half_scale_), offset, bytes);
    found->bytes += bytes.size();
}

void IvfadcExtender::check_given()
{
    for (const Given& given : given_) {
        if (given.bytes != given.shape.bytes())
            throw BadRequest("array \"" + std::string(given.shape.name) + "\" was not given whole");
    }
    if (stores_half() && !(half_scale_[0] > 0 && std::isfinite(half_scale_[0]) && half_scale_[1] >= 0))
        throw BadRequest("the scale of half vectors is impossible");
    half_codec_.scale = half_scale_[0];
    for (const std::uint32_t list : list_of_row_) {
        if (list != no_list && list >= options_.lists) throw BadRequest("a row is in a list that does not exist");
    }
}

// Finds the lists that are not known yet.
void IvfadcExtender::assign(std::span<const float> rows, std::span<std::uint32_t> lists, ThreadPool& pool) const
{
    // As the build does it: rows of a product's index lie where they are near, not where the product is large.
    const Metric metric = metric_ == Metric::cosine ? Metric::inner_product : Metric::l2;
    if (std::all_of(lists.begin(), lists.end(), [](std::uint32_t list) { return list == no_list; })) {
        return assign_to_centroids(metric, rows, dimensions_, centroids_, lists, {}, pool, nullptr);
    }
    std::vector<std::size_t> unknown;
    std::vector<float> gathered;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        if (lists[i] != no_list) continue;
        unknown.push_back(i);
        const std::span<const float> row = rows.subspan(i * dimensions_, dimensions_);
        gathered.insert(gathered.end(), row.begin(), row.end());
    }
    if (unknown.empty()) return;
    std::vector<std::uint32_t> found(unknown.size());
    assign_to_centroids(metric, gathered, dimensions_, centroids_, found, {}, pool, nullptr);
    for (std::size_t i = 0; i < unknown.size(); ++i) lists[unknown[i]] = found[i];
}

void IvfadcExtender::run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
{
    check_given();
    rows_ = rows.size();
    if (!list_of_row_.empty() && list_of_row_.size() != rows_)
        throw BadRequest("lists were given for another number of rows");
    list_of_row_.resize(rows_, no_list);
    if (options_.keeps_codes()) codes_.resize(rows_ * options_.code_width(dimensions_));
    if (options_.byte_codes) code_scale_.resize(rows_);
    const std::span<const float> vectors = rows.vectors();
    for (std::size_t first = 0; first < rows_; first += step_rows) {
        if (progress.cancel != nullptr) progress.cancel->check();
        progress.report("encoding rows", first, rows_);
        encode_step(vectors, first, std::min(step_rows, rows_ - first), pool);
    }
    if (stores_half()) measure_halves(vectors, progress, pool);
    if (options_.keeps_full()) vectors_ = rows.vectors();
    if (stores_half()) {
        halves_ = rows.compact_to_half([this](const float* row, std::uint16_t* out) { half_codec_.encode(row, out); });
    }
}

// Assign and encode some rows.
void IvfadcExtender::encode_step(std::span<const float> vectors, std::size_t first, std::size_t count, ThreadPool& pool)
{
    const std::span<const float> rows = vectors.subspan(first * dimensions_, count * dimensions_);
    const std::span<std::uint32_t> lists = std::span(list_of_row_).subspan(first, count);
    assign(rows, lists, pool);
    if (options_.byte_codes) {
        pool.parallel_for(count, 256, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const float* centroid = centroids_.data() + std::size_t{lists[i]} * dimensions_;
                code_scale_[first + i] = encode_bytes(rows.data() + i * dimensions_, centroid, dimensions_,
                                                      codes_.data() + (first + i) * dimensions_);
            }
        });
    }
    if (!options_.product_codes) return;
    std::vector<float> residuals(count * dimensions_);
    for (std::size_t i = 0; i < residuals.size(); ++i) {
        residuals[i] = rows[i] - centroids_[std::size_t{lists[i / dimensions_]} * dimensions_ + i % dimensions_];
    }
    if (!rotation_.empty()) {
        const std::vector<float> plain = residuals;
        rotation_.apply(plain, residuals, pool);
    }
    quantizer_.encode_rows(
        residuals, std::span(codes_).subspan(first * options_.subquantizers, count * options_.subquantizers), pool);
}

// The largest error of any row, the old ones included.
void IvfadcExtender::measure_halves(std::span<const float> vectors, const BuildProgress& progress, ThreadPool& pool)
{
    progress.report("measuring half vectors", 0, rows_);
    std::mutex mutex;
    pool.parallel_for(rows_, 4096, [&](std::size_t begin, std::size_t end) {
        float worst = 0;
        for (std::size_t i = begin; i < end; ++i)
            worst = std::max(worst, half_codec_.error(vectors.data() + i * dimensions_));
        const std::lock_guard lock(mutex);
        half_scale_[1] = std::max(half_scale_[1], worst);
    });
}

IvfadcArrays IvfadcExtender::made() const
{
    const std::span<const float> codebooks = options_.product_codes ? quantizer_.codebooks() : std::span<const float>();
    return {options_,    rows_,        dimensions_, centroids_, rotation_, codebooks,  half_codec_.mean,
            half_scale_, list_of_row_, codes_,      halves_,    vectors_,  code_scale_};
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_extender(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<IvfadcExtender>(shape, options);
}

}  // namespace pgwarp
