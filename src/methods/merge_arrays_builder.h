// Builders that encode new rows for the arrays of an existing index.
#pragma once

#include <optional>
#include <vector>

#include "methods/description.h"
#include "methods/given_arrays.h"
#include "methods/rows/stored_vectors.h"
#include "methods/stepped_builder.h"

namespace pgwarp
{

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

}  // namespace pgwarp
