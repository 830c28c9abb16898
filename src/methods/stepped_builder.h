// Builders that make their arrays in steps, which a device may take over.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "methods/method.h"

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
