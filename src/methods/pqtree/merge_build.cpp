// Merges: new rows go down the existing tree and to its lines.
#include "methods/pqtree/merge_build.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "methods/arrays.h"
#include "methods/pqtree/build_steps.h"

namespace pgwarp
{

namespace
{

class TreeMergeBuilder : public Builder
{
public:
    TreeMergeBuilder(const IndexShape& shape, const ParameterList& options) : shape_(shape)
    {
        if (static_cast<Metric>(shape.metric) == Metric::l1) throw BadRequest("pqtree knows no L1 distance");
        made_.dimensions = shape.dimensions;
        // The effective options leave nothing to the number of rows.
        made_.options = TreeOptions::resolve(options, 0, shape.dimensions);
        made_.make_quantizer_room();
        for (const ArrayShape& array : made_.quantizer_shapes()) given_.push_back({array, 0});
    }

    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        const auto same = [&](const Given& given) {
            return std::strncmp(given.shape.name, shape.name, sizeof(shape.name)) == 0;
        };
        const auto given = std::find_if(given_.begin(), given_.end(), same);
        if (given == given_.end()) throw BadRequest("an array that the index has no use for");
        const ArrayShape& known = given->shape;
        require_array(std::span(&shape, 1), known.name, known.type, known.rows, known.width);
        made_.write_quantizer(known.name, offset, bytes);
        given->bytes += bytes.size();
    }
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        for (const Given& given : given_) {
            if (given.bytes != given.shape.bytes())
                throw BadRequest("array \"" + std::string(given.shape.name) + "\" was not given whole");
        }
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
            return !is_pqtree_row_array(array) && std::strcmp(array.name, array_half_scale) != 0;
        });
        return shapes;
    }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        made_.read(array, offset, out);
    }
    Calibration calibration() const override { return {}; }
    ParameterList effective_options() const override { return made_.options.as_parameters(); }

private:
    struct Given {
        ArrayShape shape;
        std::uint64_t bytes;  // received
    };

    IndexShape shape_;
    TreeArrays made_;
    std::vector<Given> given_;
};

}  // namespace

std::unique_ptr<Builder> make_pqtree_merge_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<TreeMergeBuilder>(shape, options);
}

}  // namespace pgwarp
