// Merges: new rows are assigned to existing lists and encoded by existing quantizers.
#include "methods/ivfadc/merge_build.h"

#include <algorithm>
#include <limits>

#include "methods/ivfadc/build_steps.h"
#include "methods/ivfadc/row_store.h"
#include "methods/merge_arrays_builder.h"
#include "numeric/kmeans.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t step_rows = 8192;

class IvfadcMergeBuilder : public MergeArraysBuilder<IvfadcArrays>
{
public:
    IvfadcMergeBuilder(const IndexShape& shape, const ParameterList& options)
        : MergeArraysBuilder(shape,
                             IvfOptions::resolve(options, std::numeric_limits<std::uint32_t>::max(), shape.dimensions))
    {
    }

    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override;

private:
    void check_given();
    void assign(const IvfadcBuildInput& input, std::size_t first, std::size_t count);
};

void IvfadcMergeBuilder::give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (is_named(shape, array_list_of_row)) {
        require_array(std::span(&shape, 1), array_list_of_row, ArrayType::u32, shape.rows, 1);
        if (shape.rows > std::numeric_limits<std::uint32_t>::max()) throw BadRequest("too many rows for one segment");
        made_.list_of_row.resize(shape.rows, no_list);
        return write_piece(std::span<std::uint32_t>(made_.list_of_row), offset, bytes);
    }
    made_.write_quantizer(shape, offset, bytes);
    given_->count(shape, bytes.size());
}

void IvfadcMergeBuilder::check_given()
{
    given_->check_whole();
    if (made_.stores_half()) made_.half.take_scale();
    for (const std::uint32_t list : made_.list_of_row) {
        if (list != no_list && list >= made_.options.lists) throw BadRequest("a row is in a list that does not exist");
    }
}

// Finds the lists that were not given.
void IvfadcMergeBuilder::assign(const IvfadcBuildInput& input, std::size_t first, std::size_t count)
{
    const std::size_t dimensions = made_.dimensions;
    const std::span<std::uint32_t> lists = std::span(made_.list_of_row).subspan(first, count);
    const std::span<const float> rows = input.vectors().subspan(first * dimensions, count * dimensions);
    std::vector<std::size_t> unknown;
    std::vector<float> gathered;
    for (std::size_t i = 0; i < count; ++i) {
        if (lists[i] != no_list) continue;
        unknown.push_back(i);
        const std::span<const float> row = rows.subspan(i * dimensions, dimensions);
        gathered.insert(gathered.end(), row.begin(), row.end());
    }
    if (unknown.empty()) return;
    std::vector<std::uint32_t> found(unknown.size());
    assign_to_centroids(list_metric(input), gathered, dimensions, made_.centroids, found, input.pool);
    for (std::size_t i = 0; i < unknown.size(); ++i) lists[unknown[i]] = found[i];
}

void IvfadcMergeBuilder::run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool)
{
    check_given();
    made_.rows = rows.size();
    if (!made_.list_of_row.empty() && made_.list_of_row.size() != made_.rows)
        throw BadRequest("lists were given for another number of rows");
    made_.list_of_row.resize(made_.rows, no_list);
    const IvfadcBuildInput input{shape_, rows, progress, pool};
    for (std::size_t first = 0; first < made_.rows; first += step_rows) {
        input.report("assigning rows", first, made_.rows);
        assign(input, first, std::min(step_rows, made_.rows - first));
    }
    IvfadcBuildSteps steps;
    if (made_.options.byte_codes) steps.encode_bytes(input, made_);
    if (made_.options.product_codes) steps.encode_products(input, made_);
    keep_vectors(steps, input);
}

}  // namespace

std::unique_ptr<Builder> make_ivfadc_merge_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<IvfadcMergeBuilder>(shape, options);
}

}  // namespace pgwarp
