// Builders that make their arrays in steps, which a device may take over.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

// A builder with its arrays in memory. Arrays has `options`, shapes() and read().
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
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        const Input input{shape_, rows, progress, pool};
        if (const std::unique_ptr<Steps> device = std::move(device_)) {
            try {
                return run_steps(*device, input);
            } catch (const std::bad_alloc&) {
                // The CPU takes over while the rows are there.
                if (rows.size() > 0 && rows.vectors().empty()) throw;
            }
        }
        Steps steps;
        run_steps(steps, input);
    }

protected:
    SteppedBuilder(const IndexShape& shape, std::unique_ptr<Steps> device) : shape_(shape), device_(std::move(device))
    {
    }
    bool has_device() const { return device_ != nullptr; }
    // Makes all arrays anew.
    virtual void run_steps(Steps& steps, const Input& input) = 0;

    IndexShape shape_;

private:
    std::unique_ptr<Steps> device_;
};

}  // namespace pgwarp
