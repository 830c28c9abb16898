// Streams stored rows past a sample of queries, then makes the curve as a build does.
#include "methods/pqtree/calibrator.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "methods/arrays.h"
#include "methods/pqtree/build_arrays.h"
#include "methods/pqtree/calibration.h"
#include "methods/recall/truth.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t tile_rows = 512;
constexpr std::uint64_t most_rows = std::numeric_limits<std::uint32_t>::max();

class TreeCalibrator : public Builder
{
public:
    TreeCalibrator(const IndexShape& shape, const ParameterList& options)
        : metric_(static_cast<Metric>(shape.metric)), dimensions_(shape.dimensions)
    {
        if (metric_ == Metric::l1) throw BadRequest("pqtree knows no L1 distance");
        index_.dimensions = dimensions_;
        index_.options = TreeOptions::resolve(options, 0, dimensions_);
        if (!index_.options.keeps_vectors())
            throw BadRequest("the index keeps nothing that recall could be measured by");
        index_.make_quantizer_room();
    }

    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void run(RowBuffer& none, const BuildProgress& progress, ThreadPool& pool) override;
    std::vector<ArrayShape> arrays() const override { return {}; }
    void read(const std::string&, std::uint64_t, std::span<std::byte>) const override
    {
        throw BadRequest("a calibration makes no arrays");
    }
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return index_.options.as_parameters(); }

private:
    // The stored rows by which recall is measured.
    const char* kept_name() const { return index_.options.keeps_full() ? array_vectors : array_half; }
    ArrayType kept_type() const { return index_.options.keeps_full() ? ArrayType::f32 : ArrayType::f16; }
    std::size_t row_bytes() const { return dimensions_ * array_type_bytes(kept_type()); }

    void give_small(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes);
    void give_rows(std::uint64_t offset, std::span<const std::byte> bytes);
    void begin_rows();
    void choose_queries();
    void compare(std::size_t first, std::size_t count, const std::byte* stored);
    void decode(const std::byte* stored, float* out) const;

    Metric metric_;
    std::size_t dimensions_;
    TreeArrays index_;  // without vectors
    std::vector<std::uint64_t> dead_;
    std::vector<std::uint32_t> sample_;  // rows that are queries
    std::vector<std::byte> given_;       // their stored form
    std::vector<float> queries_;         // the same decoded
    std::optional<NearestOfQueries> nearest_;
    std::vector<std::byte> begun_;  // the first bytes of a row
    std::uint64_t next_ = 0;        // the next byte of the rows' array
    bool comparing_ = false;
    Calibration calibration_;
};

template <class Values>
void give_piece(Values& values, const ArrayShape& shape, ArrayType type, std::uint64_t width, std::uint64_t most,
                std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (shape.type != type || shape.width != width || shape.rows > most)
        throw BadRequest("array \"" + std::string(shape.name) + "\" has another shape than its index");
    if (values.size() != shape.rows * width) values.resize(shape.rows * width);
    write_piece(std::span(values), offset, bytes);
}

void TreeCalibrator::give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (std::strncmp(shape.name, kept_name(), sizeof(shape.name)) != 0) return give_small(shape, offset, bytes);
    require_array(std::span(&shape, 1), kept_name(), kept_type(), index_.rows, dimensions_);
    if (offset != next_ || bytes.size() > shape.bytes() - offset) throw BadRequest("rows out of order");
    if (!comparing_) begin_rows();
    give_rows(offset, bytes);
}

void TreeCalibrator::give_small(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (comparing_) throw BadRequest("an array after the rows");
    const std::string name(shape.name, ::strnlen(shape.name, sizeof(shape.name)));
    if (name == array_tree_codes) {
        give_piece(index_.codes, shape, ArrayType::u8, index_.options.code_bytes(), most_rows, offset, bytes);
        index_.rows = shape.rows;
    } else if (name == array_calib_dead) {
        give_piece(dead_, shape, ArrayType::u64, 1, most_rows / 64 + 1, offset, bytes);
    } else if (name == array_calib_row) {
        give_piece(sample_, shape, ArrayType::u32, 1, most_calibration_queries, offset, bytes);
    } else if (name == array_calib_query) {
        give_piece(given_, shape, ArrayType::u8, row_bytes(), most_calibration_queries, offset, bytes);
    } else {
        const std::vector<ArrayShape> known = index_.quantizer_shapes();
        const auto found = std::ranges::find_if(known, [&](const ArrayShape& one) { return name == one.name; });
        if (found == known.end()) throw BadRequest("an array that the index has no use for");
        require_array(std::span(&shape, 1), found->name, found->type, found->rows, found->width);
        index_.write_quantizer(name, offset, bytes);
    }
}

// Checks the arrays that rows are compared by.
void TreeCalibrator::begin_rows()
{
    index_.check_quantizer();
    if (!dead_.empty() && dead_.size() != (index_.rows + 63) / 64)
        throw BadRequest("tombstones of another number of rows");
    if (sample_.empty() || sample_.size() > most_calibration_queries || given_.size() != sample_.size() * row_bytes())
        throw BadRequest("a sample without its rows");
    for (const std::uint32_t row : sample_) {
        if (row >= index_.rows) throw BadRequest("a sampled row that does not exist");
    }
    choose_queries();
    comparing_ = true;
}

void TreeCalibrator::choose_queries()
{
    const std::size_t given = sample_.size();
    const std::size_t wanted = std::min(given, tree_calibration_sample(index_.options, index_.rows));
    queries_.resize(wanted * dimensions_);
    for (std::size_t i = 0; i < wanted; ++i) {
        const std::size_t from = i * given / wanted;
        sample_[i] = sample_[from];
        decode(given_.data() + from * row_bytes(), queries_.data() + i * dimensions_);
    }
    sample_.resize(wanted);
    given_ = {};
    nearest_.emplace(metric_, queries_, dimensions_, std::min<std::size_t>(Calibration::ks[3] + 1, index_.rows));
}

void TreeCalibrator::decode(const std::byte* stored, float* out) const
{
    if (index_.options.keeps_full()) {
        std::memcpy(out, stored, row_bytes());
        return;
    }
    std::vector<half_bits> halves(dimensions_);
    std::memcpy(halves.data(), stored, row_bytes());
    index_.half.codec.decode(halves.data(), out);
}

// Compares whole rows, and a row in two pieces once its rest has come.
void TreeCalibrator::give_rows(std::uint64_t offset, std::span<const std::byte> bytes)
{
    next_ = offset + bytes.size();
    if (!begun_.empty()) {
        const std::size_t missing = std::min(row_bytes() - begun_.size(), bytes.size());
        begun_.insert(begun_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(missing));
        bytes = bytes.subspan(missing);
        if (begun_.size() < row_bytes()) return;
        compare((next_ - bytes.size()) / row_bytes() - 1, 1, begun_.data());
        begun_.clear();
    }
    const std::size_t first = (next_ - bytes.size()) / row_bytes();
    const std::size_t whole = bytes.size() / row_bytes();
    for (std::size_t done = 0; done < whole; done += tile_rows)
        compare(first + done, std::min(tile_rows, whole - done), bytes.data() + done * row_bytes());
    begun_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(whole * row_bytes()), bytes.end());
}

void TreeCalibrator::compare(std::size_t first, std::size_t count, const std::byte* stored)
{
    std::vector<float> vectors(count * dimensions_);
    for (std::size_t i = 0; i < count; ++i) decode(stored + i * row_bytes(), vectors.data() + i * dimensions_);
    std::vector<float> norms(count);
    squared_norms(vectors.data(), count, dimensions_, norms.data());
    nearest_->compare(vectors.data(), norms.data(), count, first, dead_);
}

void TreeCalibrator::run(RowBuffer& none, const BuildProgress& progress, ThreadPool& pool)
{
    if (none.size() > 0) throw BadRequest("a calibration takes its rows as an array");
    if (!comparing_ || next_ != index_.rows * row_bytes()) throw BadRequest("the rows were not given whole");
    std::vector<std::vector<std::uint32_t>> truth(sample_.size());
    for (std::size_t q = 0; q < sample_.size(); ++q) {
        for (const Candidate& candidate : nearest_->take(q)) {
            if (candidate.row != sample_[q] && truth[q].size() < Calibration::ks[3]) truth[q].push_back(candidate.row);
        }
    }
    const auto proposer = make_cpu_proposer(metric_, index_.options, index_.tree, index_.lines, index_.codes, pool);
    const TreeCalibration measured{index_.options, *proposer, index_.rows, sample_, queries_, truth, dead_};
    calibration_ = measured.run(progress, pool);
}

}  // namespace

std::unique_ptr<Builder> make_pqtree_calibrator(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<TreeCalibrator>(shape, options);
}

}  // namespace pgwarp
