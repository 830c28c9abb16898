// The build of exact.
#include "methods/arrays.h"
#include "methods/exact/exact.h"
#include "methods/list_builder.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

// Stores the rows unchanged: as floats, as the halves that they came from, or as words of bits.
class ExactBuilder : public Builder
{
public:
    ExactBuilder(const IndexShape& shape, const ParameterList& options)
        : dimensions_(shape.dimensions),
          type_(vector_array_type(shape)),
          in_halves_(keeps_halves(shape)),
          options_(options)
    {
    }

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool&) override
    {
        progress.report("writing rows", 0, rows.size());
        rows_ = rows.size();
        if (in_halves_) {
            halves_ =
                rows.compact_to_half([this](const float* row, std::uint16_t* out) { to_half(row, dimensions_, out); });
        } else {
            vectors_ = rows.vectors();
        }
    }
    std::vector<ArrayShape> arrays() const override
    {
        return {make_array_shape(array_vectors, type_, rows_, dimensions_)};
    }
    void read(const std::string&, std::uint64_t offset, std::span<std::byte> out) const override
    {
        if (in_halves_) return read_piece(halves_, offset, out);
        read_piece(std::span<const float>(vectors_), offset, out);
    }
    Calibration calibration() const override
    {
        Calibration calibration;
        calibration.count = 1;
        std::fill_n(calibration.points[0].recall, 4, 1.0F);
        return calibration;
    }
    ParameterList effective_options() const override { return options_; }

private:
    std::size_t dimensions_;
    ArrayType type_;
    bool in_halves_;
    ParameterList options_;
    std::span<float> vectors_;
    std::span<const half_bits> halves_;
    std::size_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Builder> make_exact_builder(const IndexShape& shape, const ParameterList& options)
{
    if (is_list(shape.element)) return make_list_builder(options);
    return std::make_unique<ExactBuilder>(shape, options);
}

}  // namespace pgwarp
