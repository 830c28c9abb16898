// Builders that make their arrays in steps, which a device may take over, and those that add rows to such arrays.
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "methods/description.h"
#include "methods/given_arrays.h"
#include "methods/method.h"
#include "methods/rows/stored_vectors.h"

namespace pgwarp
{

// A builder with its arrays in memory. Arrays has `options`, `dimensions`, `rows`, shapes() and read().
template <class Arrays>
class ArraysBuilder : public Builder
{
public:
    std::vector<ArrayShape> arrays() const override { return made_.shapes(); }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        made_.read(array, offset, out);
    }
    Calibration calibration() const override { return calibration_; }
    ParameterList effective_options() const override { return made_.options.as_parameters(); }

protected:
    Arrays made_;
    Calibration calibration_{};
};

// A builder that encodes new rows by the quantizers of an index, which it is given. Arrays also has
// quantizer_shapes(), make_quantizer_room(), and what SteppedBuilder's steps make of vectors.
template <class Arrays>
class MergeArraysBuilder : public ArraysBuilder<Arrays>
{
public:
    // The arrays of the new rows, and "half_scale", whose error they may raise.
    std::vector<ArrayShape> arrays() const override
    {
        std::vector<ArrayShape> shapes = this->made_.shapes();
        std::erase_if(shapes, [this](const ArrayShape& array) {
            return !is_row_array(*find_description(shape_.method), array.name) && !is_named(array, array_half_scale);
        });
        return shapes;
    }

protected:
    // options: of the index, with every number resolved.
    MergeArraysBuilder(const IndexShape& shape, const decltype(Arrays::options)& options) : shape_(shape)
    {
        this->made_.dimensions = shape.dimensions;
        this->made_.options = options;
        this->made_.make_quantizer_room();
        given_.emplace(this->made_.quantizer_shapes());
    }
    // Keeps the new rows as vectors or halves, the last step, because the floats may be given up.
    template <class Steps, class Input>
    void keep_vectors(Steps& steps, const Input& input)
    {
        const VectorForm form = form_of(this->made_.options);
        if (form == VectorForm::full) this->made_.vectors = input.vectors();
        if (form != VectorForm::half) return;
        input.report("measuring half vectors", 0, this->made_.rows);
        this->made_.half.measure(input.vectors(), input.pool, input.progress.cancel);
        steps.keep_halves(input, this->made_);
    }

    IndexShape shape_;
    std::optional<GivenArrays> given_;
};

// Steps are those of the CPU; a device derives from them.
template <class Arrays, class Steps, class Input>
class SteppedBuilder : public ArraysBuilder<Arrays>
{
public:
    // Throws BadRequest for invalid options, before rows come.
    SteppedBuilder(const IndexShape& shape, const ParameterList& options, std::unique_ptr<Steps> device)
        : shape_(shape), asked_(options), device_(std::move(device))
    {
        begin_arrays(0);
    }
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        const Input input{shape_, rows, progress, pool};
        if (const std::unique_ptr<Steps> device = std::move(device_)) {
            try {
                return make_arrays(*device, input);
            } catch (const std::bad_alloc&) {
                // The CPU takes over while the rows are there.
                if (rows.size() > 0 && rows.vectors().empty()) throw;
            }
        }
        Steps steps;
        make_arrays(steps, input);
    }

protected:
    bool has_device() const { return device_ != nullptr; }
    // Begins the arrays of `rows` rows with the options that were asked for.
    void begin_arrays(std::size_t rows)
    {
        this->made_ = {};
        this->made_.rows = rows;
        this->made_.dimensions = shape_.dimensions;
        this->made_.options = decltype(Arrays::options)::resolve(asked_, rows, shape_.dimensions);
    }
    // Makes all arrays; their options and their size are known.
    virtual void run_steps(Steps& steps, const Input& input) = 0;

    IndexShape shape_;
    ParameterList asked_;

private:
    void make_arrays(Steps& steps, const Input& input)
    {
        begin_arrays(input.rows.size());
        run_steps(steps, input);
    }

    std::unique_ptr<Steps> device_;
};

}  // namespace pgwarp
