// Merges: new rows go down the existing tree and to its lines.
#include "methods/pqtree/merge_build.h"

#include <optional>

#include "methods/given_arrays.h"
#include "methods/pqtree/build_steps.h"
#include "methods/stepped_builder.h"

namespace pgwarp
{

namespace
{

class TreeMergeBuilder : public ArraysBuilder<TreeArrays>
{
public:
    TreeMergeBuilder(const IndexShape& shape, const ParameterList& options) : shape_(shape)
    {
        made_.dimensions = shape.dimensions;
        // The effective options leave nothing to the number of rows.
        made_.options = TreeOptions::resolve(options, 0, shape.dimensions);
        made_.make_quantizer_room();
        given_.emplace(made_.quantizer_shapes());
    }

    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        const char* name = given_->count(shape, bytes.size());
        if (name == nullptr) throw BadRequest("an array that the index has no use for");
        made_.write_quantizer(name, offset, bytes);
    }
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        given_->check_whole();
        made_.check_quantizer();
        made_.rows = rows.size();
        const TreeBuildInput input{shape_, rows, progress, pool};
        TreeBuildSteps steps;
        steps.encode_rows(input, made_);
        if (made_.options.keeps_full()) made_.vectors = input.vectors();
        if (!made_.options.keeps_half()) return;
        input.report("measuring half vectors", 0, made_.rows);
        made_.half.measure(input.vectors(), pool, progress.cancel);
        steps.keep_halves(input, made_);
    }
    // The arrays of the new rows, and "half_scale", whose error they may raise.
    std::vector<ArrayShape> arrays() const override
    {
        std::vector<ArrayShape> shapes = made_.shapes();
        std::erase_if(shapes, [](const ArrayShape& array) {
            return !is_pqtree_row_array(array) && !is_named(array, array_half_scale);
        });
        return shapes;
    }

private:
    IndexShape shape_;
    std::optional<GivenArrays> given_;
};

}  // namespace

std::unique_ptr<Builder> make_pqtree_merge_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<TreeMergeBuilder>(shape, options);
}

}  // namespace pgwarp
