// Measures recall anew by proposals of the CPU.
#include "methods/given_arrays.h"
#include "methods/pqtree/build_arrays.h"
#include "methods/pqtree/calibration.h"

namespace pgwarp
{

namespace
{

class TreeCalibrator : public Recalibrator
{
public:
    TreeCalibrator(const IndexShape& shape, const ParameterList& options)
        : Recalibrator(static_cast<Metric>(shape.metric), shape.dimensions), metric_(static_cast<Metric>(shape.metric))
    {
        index_.dimensions = shape.dimensions;
        index_.options = TreeOptions::resolve(options, 0, shape.dimensions);
        given_share_ = index_.options.ranked_share;
        if (!index_.options.keeps_vectors())
            throw BadRequest("the index keeps nothing that recall could be measured by");
        index_.make_quantizer_room();
        given_.emplace(index_.quantizer_shapes());
    }
    // With the share that the calibration chose: also the usual one, where that of the index is another.
    ParameterList effective_options() const override
    {
        ParameterList list = index_.options.as_parameters();
        if (given_share_ != usual_ranked_share)
            list.set(option_ranked_share, static_cast<std::int64_t>(index_.options.ranked_share));
        return list;
    }

private:
    ArrayShape stored() const override { return stored_shape(form_of(index_.options), index_.rows, index_.dimensions); }
    bool take(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (is_named(shape, array_tree_codes)) {
            take_piece(index_.codes, shape, ArrayType::u8, index_.options.code_bytes(), most_rows, offset, bytes);
            index_.rows = shape.rows;
            return true;
        }
        const char* name = given_->count(shape, bytes.size());
        return name != nullptr && index_.write_quantizer(name, offset, bytes);
    }
    void check() override
    {
        given_->check_whole();
        index_.check_quantizer();
    }
    std::size_t wanted_queries() const override { return tree_calibration_sample(index_.rows); }
    void decode(std::size_t, const std::byte* stored, float* out) const override
    {
        decode_stored(form_of(index_.options), index_.half, index_.dimensions, stored, out);
    }
    Calibration measure(const CalibrationSample& sample, const BuildProgress& progress, ThreadPool& pool) override
    {
        const auto proposer = make_cpu_proposer(metric_, index_.options, index_.tree, index_.lines, index_.codes, pool);
        const TreeMeasurement measured = measure_tree(index_.options, *proposer, index_.rows, sample, progress, pool);
        index_.options.ranked_share = measured.ranked_share;
        return measured.curve;
    }

    Metric metric_;
    TreeArrays index_;  // without vectors
    std::optional<GivenArrays> given_;
    std::size_t given_share_ = usual_ranked_share;  // of the index
};

}  // namespace

std::unique_ptr<Builder> make_pqtree_calibrator(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<TreeCalibrator>(shape, options);
}

}  // namespace pgwarp
