// Merges: new rows go down the existing tree and to its lines.
#include "methods/merge_arrays_builder.h"
#include "methods/pqtree/build_steps.h"

namespace pgwarp
{

namespace
{

class TreeMergeBuilder : public MergeArraysBuilder<TreeArrays>
{
public:
    TreeMergeBuilder(const IndexShape& shape, const ParameterList& options)
        : MergeArraysBuilder(shape, TreeOptions::resolve(options, 0, shape.dimensions))
    {
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
        keep_vectors(steps, input);
    }
};

}  // namespace

std::unique_ptr<Builder> make_pqtree_merge_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<TreeMergeBuilder>(shape, options);
}

}  // namespace pgwarp
