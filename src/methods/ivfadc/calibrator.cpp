// Measures recall anew from the lists of the true neighbours.
#include "methods/ivfadc/calibrator.h"

#include <algorithm>

#include "methods/given_arrays.h"
#include "methods/ivfadc/build_arrays.h"
#include "methods/ivfadc/build_samples.h"
#include "methods/ivfadc/calibration.h"
#include "methods/ivfadc/drift.h"
#include "methods/ivfadc/row_store.h"
#include "methods/recall/recalibration.h"
#include "protocol/drift.h"

namespace pgwarp
{

namespace
{

class IvfadcCalibrator : public Recalibrator
{
public:
    IvfadcCalibrator(const IndexShape& shape, const ParameterList& options)
        : Recalibrator(static_cast<Metric>(shape.metric), shape.dimensions), metric_(static_cast<Metric>(shape.metric))
    {
        index_.dimensions = shape.dimensions;
        index_.options = IvfOptions::resolve(options, most_rows, shape.dimensions);
        if (!by_vectors() && !index_.options.byte_codes)
            throw BadRequest("the index keeps nothing that recall could be measured by");
        index_.make_quantizer_room();
    }
    ParameterList effective_options() const override { return index_.options.as_parameters(); }

private:
    bool by_vectors() const { return form_of(index_.options) != VectorForm::none; }
    std::size_t rows() const { return index_.list_of_row.size(); }

    ArrayShape stored() const override
    {
        return by_vectors() ? stored_shape(form_of(index_.options), rows(), index_.dimensions)
                            : make_array_shape(array_codes, ArrayType::u8, rows(), index_.dimensions);
    }
    bool take(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (is_named(shape, array_list_of_row)) {
            take_piece(index_.list_of_row, shape, ArrayType::u32, 1, most_rows, offset, bytes);
        } else if (is_named(shape, array_code_scale)) {
            take_piece(index_.code_scale, shape, ArrayType::f32, 1, most_rows, offset, bytes);
        } else {
            index_.write_quantizer(shape, offset, bytes);
        }
        return true;
    }
    void check() override
    {
        if (!by_vectors() && index_.code_scale.size() != rows()) throw BadRequest("scales of another number of rows");
        for (const std::uint32_t list : index_.list_of_row) {
            if (list >= index_.options.lists) throw BadRequest("a row is in a list that does not exist");
        }
        if (index_.stores_half()) index_.half.take_scale();
    }
    std::size_t wanted_queries() const override { return calibration_sample(index_.options, rows()); }
    void decode(std::size_t row, const std::byte* stored, float* out) const override
    {
        index_.decode(row, stored, out);
    }
    Calibration measure(const CalibrationSample& sample, const BuildProgress& progress, ThreadPool& pool) override
    {
        return IvfadcCalibration{index_.options, metric_, index_.centroids, index_.list_of_row, sample}.run(progress,
                                                                                                            pool);
    }

    Metric metric_;
    IvfadcArrays index_;  // without its rows, but with their lists and scales
};

}  // namespace

std::unique_ptr<Builder> make_ivfadc_calibrator(const IndexShape& shape, const ParameterList& options)
{
    if (options.get(option_trained_rows, -1) >= 0) return make_ivfadc_drift(shape, options);
    return std::make_unique<IvfadcCalibrator>(shape, options);
}

}  // namespace pgwarp
